#pragma once

#include <span>
#include <vector>

#include "autodiff/export.h"
#include "autodiff/tensor.h"

namespace palimpsest PALIMPSEST_EXPORT {  // for palimpsest-mpi

/// The number of examples in a batch, which is the size of the first axis of each of its tensors.
/// Throws `ShapeError` where these sizes differ, and `ArgumentError` for a batch without tensors.
std::int64_t examples_of(std::span<const Tensor> batch);

/// The size of the first tensor's first axis. 1 for a batch without tensors, or whose first tensor
/// has no axis.
std::int64_t examples_or_one(std::span<const Tensor> batch);

/// Part `part` of a batch cut evenly into `parts`, as views. When the number of examples is not
/// divisible by `parts`, the first parts have one example more. Throws `ArgumentError` for fewer
/// examples than parts.
std::vector<Tensor> part_of(std::span<const Tensor> batch, int part, int parts);

/// The type of the values of all parts, concatenated along the first axis. Throws `ShapeError` or
/// `DTypeError` where they do not fit together.
ValueType type_together(std::span<const ValueType> parts);
/// Concatenates the values of all parts along the first axis. Throws as `type_together`.
Tensor put_together(std::span<const Tensor> parts);

}  // namespace palimpsest
