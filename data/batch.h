#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "autodiff/bytes.h"
#include "autodiff/export.h"
#include "autodiff/tensor.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Some examples of a dataset, as a `DataLoader` hands them out.
struct Batch {
  std::vector<std::string> names;      ///< of the tensors, as in the columns of the dataset
  std::vector<Tensor> tensors;         ///< each with a row for each example
  std::vector<std::int64_t> examples;  ///< the rows of the dataset, in order
  std::int64_t epoch = 0;
  std::int64_t index = 0;  ///< of the batch in its epoch

  /// Number of examples.
  std::int64_t size() const { return static_cast<std::int64_t>(examples.size()); }
  /// Bytes of the tensors.
  Bytes bytes() const;
  /// A tensor by position or name. Throws `ArgumentError` that lists what there is.
  const Tensor& operator[](std::size_t position) const;
  const Tensor& operator[](std::string_view name) const;
};

}  // namespace palimpsest
