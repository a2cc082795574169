#include "data/batch.h"

#include <algorithm>

#include "autodiff/error.h"

namespace palimpsest {

Bytes Batch::bytes() const {
  Bytes sum = 0;
  for (const Tensor& tensor : tensors) sum += tensor.defined() ? tensor.bytes() : 0;
  return sum;
}

const Tensor& Batch::operator[](std::size_t position) const {
  if (position < tensors.size()) return tensors[position];
  throw ArgumentError("[batch] there is no tensor " + std::to_string(position) +
                      "; use positions below " + std::to_string(tensors.size()));
}

const Tensor& Batch::operator[](std::string_view name) const {
  const std::size_t count = std::min(names.size(), tensors.size());
  for (std::size_t i = 0; i < count; ++i) {
    if (names[i] == name) return tensors[i];
  }
  std::string known;
  for (std::size_t i = 0; i < count; ++i) known += (i == 0 ? "'" : ", '") + names[i] + "'";
  throw ArgumentError("[batch] there is no tensor '" + std::string(name) + "'; use one of " +
                      known);
}

}  // namespace palimpsest
