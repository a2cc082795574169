#include <cstdio>
#include <ostream>

#include "autodiff/tensor.h"

namespace palimpsest {
namespace {

constexpr std::int64_t edge_items = 3;

std::string element_text(const Tensor& tensor, std::int64_t index) {
  const double value = tensor.at(index);
  if (tensor.dtype() == DType::boolean) return value != 0 ? "true" : "false";
  char text[32];
  std::snprintf(text, sizeof text, is_integer(tensor.dtype()) ? "%.0f" : "%.6g", value);
  return text;
}

/// Appends the block of axes from `axis` on; the depth is bounded by `max_rank`.
void append(std::string& text, const Tensor& tensor, int axis, std::int64_t offset) {
  const Shape& shape = tensor.shape();
  if (axis == shape.rank()) {
    text += element_text(tensor, offset);
    return;
  }
  const std::int64_t stride = strides_of(shape)[static_cast<std::size_t>(axis)];
  const bool innermost = axis == shape.rank() - 1;
  text += '[';
  for (std::int64_t i = 0; i < shape[axis]; ++i) {
    if (i > 0)
      text += innermost ? ", " : ",\n" + std::string(static_cast<std::size_t>(axis) + 1, ' ');
    if (i == edge_items && shape[axis] > 2 * edge_items) {
      text += "...";
      i = shape[axis] - edge_items - 1;
    } else {
      append(text, tensor, axis + 1, offset + i * stride);
    }
  }
  text += ']';
}

}  // namespace

std::string to_string(const Tensor& tensor) {
  if (!tensor.defined()) return "undefined tensor";
  std::string text = to_string(tensor.type()) + "\n";
  append(text, tensor, 0, 0);
  return text;
}

std::ostream& operator<<(std::ostream& stream, const Tensor& tensor) {
  return stream << to_string(tensor);
}

}  // namespace palimpsest
