#include "autodiff/operations/reduction.h"

#include <algorithm>
#include <utility>

#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/strided.h"
#include "autodiff/operations/unary.h"

namespace palimpsest {
namespace {

/// The permutation that moves the reduced axes after the kept ones.
std::vector<int> order_of(const Shape& shape, const AxisMask& mask) {
  std::vector<int> order;
  for (const bool reduced : {false, true}) {
    for (int axis = 0; axis < shape.rank(); ++axis) {
      if (mask[at(axis)] == reduced) order.push_back(axis);
    }
  }
  return order;
}

/// True if no kept axis lies between reduced ones; [first, last) are then the reduced axes.
bool adjacent(const Shape& shape, const AxisMask& mask, int& first, int& last) {
  first = 0;
  while (first < shape.rank() && !mask[at(first)]) ++first;
  last = first;
  while (last < shape.rank() && mask[at(last)]) ++last;
  return std::none_of(mask.begin() + last, mask.begin() + shape.rank(), [](bool m) { return m; });
}

}  // namespace

AxisMask mask_of(const Axes& axes, const Shape& shape, std::string_view operation,
                 const Where& where) {
  AxisMask mask{};
  for (const int axis : axes) {
    const int wrapped = shape.wrap(axis, operation, where);
    if (std::exchange(mask[at(wrapped)], true)) {
      throw ShapeError(operation, "axis " + std::to_string(axis) + " is named twice; name it once",
                       where);
    }
  }
  if (axes.empty()) std::fill_n(mask.begin(), shape.rank(), true);
  return mask;
}

Shape reduced_shape(const Shape& shape, const AxisMask& mask, bool keep_axes) {
  Shape result;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (!mask[at(axis)])
      result.push_back(shape[axis]);
    else if (keep_axes)
      result.push_back(1);
  }
  return result;
}

std::int64_t reduced_count(const Shape& shape, const AxisMask& mask) {
  std::int64_t count = 1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (mask[at(axis)]) count *= shape[axis];
  }
  return count;
}

Var record_reduction(const Operation& operation, const Var& x, const ReduceAttributes& attributes,
                     bool keep_axes, DType dtype, const Where& where) {
  const ValueType type{reduced_shape(x.shape(), attributes.mask, keep_axes), dtype};
  return x.tape().record(operation, {&x, 1}, {&type, 1}, attributes, where);
}

Var with_axes_kept(const Var& result, const Var& operand, const AxisMask& mask) {
  return reshape(result, reduced_shape(operand.shape(), mask, true));
}

Var inverse_or_zero(const Var& y) {
  const Var positive = sign(y);
  return positive / (y + (1.0 - positive));
}

Var merge_axes(const Var& x, const AxisMask& mask) {
  const Shape shape = x.shape();
  int first = 0;
  int last = 0;
  const bool in_place = adjacent(shape, mask, first, last);
  const Var ordered = in_place ? x : permute(x, order_of(shape, mask));
  std::int64_t before = 1;
  std::int64_t after = 1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (!mask[at(axis)]) (in_place && axis >= last ? after : before) *= shape[axis];
  }
  return reshape(ordered, Shape{before, reduced_count(shape, mask), after});
}

Var unmerge_axes(const Var& merged, const Shape& shape, const AxisMask& mask) {
  int first = 0;
  int last = 0;
  if (adjacent(shape, mask, first, last)) return reshape(merged, shape);
  const std::vector<int> order = order_of(shape, mask);
  Shape ordered;
  std::vector<int> back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    ordered.push_back(shape[order[i]]);
    back[at(order[i])] = static_cast<int>(i);
  }
  return permute(reshape(merged, ordered), back);
}

ReductionWalk::ReductionWalk(const Shape& shape, const AxisMask& mask) {
  // Adjacent axes of the same kind are merged; axes of size 1 are dropped.
  struct Axis {
    bool reduced;
    std::int64_t size;
    std::int64_t stride;
  };
  const auto strides = strides_of(shape);
  std::array<Axis, max_rank> axes{};
  std::size_t rank = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == 1) continue;
    if (rank > 0 && axes[rank - 1].reduced == mask[at(axis)]) {
      axes[rank - 1].size *= shape[axis];
      axes[rank - 1].stride = strides[at(axis)];
    } else {
      axes[rank++] = {mask[at(axis)], shape[axis], strides[at(axis)]};
    }
  }
  if (rank > 0 && !axes[rank - 1].reduced) columns_ = axes[--rank].size;
  if (rank > 0 && axes[rank - 1].reduced) run_ = rows_ = axes[--rank].size;
  for (std::size_t i = 0; i < rank; ++i) {
    (axes[i].reduced ? rows_ : groups_) *= axes[i].size;
    Walk& walk = axes[i].reduced ? reduced_ : kept_;
    walk.sizes[walk.rank] = axes[i].size;
    walk.strides[walk.rank++] = axes[i].stride;
  }
}

}  // namespace palimpsest
