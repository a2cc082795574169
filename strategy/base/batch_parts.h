#pragma once

#include <span>
#include <vector>

#include "autodiff/tensor.h"

namespace palimpsest {

/// The examples of a batch, along the first axis of each of its tensors. Throws `ShapeError` where
/// these differ, `ArgumentError` for a batch without tensors.
std::int64_t examples_of(std::span<const Tensor> batch);

/// The same, but 1 for a batch without tensors, or whose first has no axis.
std::int64_t examples_or_one(std::span<const Tensor> batch);

/// Part `part` of a batch cut evenly into `parts`, the first ones larger by an example where it
/// does not come out; views. Throws `ArgumentError`
/// for fewer examples than parts.
std::vector<Tensor> part_of(std::span<const Tensor> batch, int part, int parts);

/// The shape of values of parts of a batch, one behind the other along the first axis. Throws
/// `ShapeError` where they do not fit.
Shape shape_together(std::span<const Shape> parts);
/// Such a value. Throws the same.
Tensor put_together(std::span<const Tensor> parts);

}  // namespace palimpsest
