#pragma once

#include <algorithm>
#include <string>

#include "autodiff/kernels/softmax.h"
#include "autodiff/parallel.h"
#include "autodiff/var.h"

namespace palimpsest {

/// A tensor as lines along one axis: (outer, size, inner). The line at the indices (o, i)
/// of the other axes has number o·inner + i.
struct LineShape {
  std::int64_t outer = 1;
  std::int64_t size = 1;
  std::int64_t inner = 1;

  LineShape(const Shape& shape, int axis) : size(shape[axis]) {
    for (int i = 0; i < axis; ++i) outer *= shape[i];
    for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  }
};

/// Calls `f(lines, offset, first)` in parallel for batches of lines of `shape` along `axis`.
/// `offset` is the batch's first element, `first` its first line, and `cost` the cost of one
/// element.
template <class F>
void for_lines(const Shape& shape, int axis, double cost, F f) {
  const LineShape line(shape, axis);
  const std::int64_t width = std::min(line.inner, Lines::most_columns);
  if (width == 0) return;
  const std::int64_t batches = (line.inner + width - 1) / width;
  const double batch_cost = cost * static_cast<double>(width * line.size) + 16;
  parallel_chunks(
      line.outer * batches, grain_for(batch_cost), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t batch = begin; batch < end; ++batch) {
          const std::int64_t place = batch % batches * width;
          const std::int64_t first = batch / batches * line.inner + place;
          const std::int64_t offset = batch / batches * line.size * line.inner + place;
          f(Lines{line.size, line.inner, std::min(width, line.inner - place)}, offset, first);
        }
      });
}

}  // namespace palimpsest
