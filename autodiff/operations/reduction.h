#pragma once

#include <array>
#include <cstdint>

#include "autodiff/operations/reduce.h"

/// What the reductions share: which axes they reduce, and how a tensor looks to a loop over them.
namespace palimpsest {

/// Marks the axes that are reduced.
using AxisMask = std::array<bool, max_rank>;

/// The mask of `axes`, all of them when there are none. Throws `ShapeError` for an axis that the
/// shape does not have or that is named twice.
AxisMask mask_of(const Axes& axes, const Shape& shape, std::string_view operation,
                 const Where& where);

/// `shape` with the reduced axes of size 1, or without them.
Shape reduced_shape(const Shape& shape, const AxisMask& mask, bool keep_axes);

/// How many elements one result is made of.
std::int64_t reduced_count(const Shape& shape, const AxisMask& mask);

/// What the node of a reduction remembers.
struct ReduceAttributes {
  AxisMask mask;
  double number = 0;  ///< the divisor of a mean or a variance, the order of a norm

  bool operator==(const ReduceAttributes& other) const {
    return mask == other.mask && same_number(number, other.number);
  }
};

/// Records a reduction of x to one value of `dtype` a result.
Var record_reduction(const Operation& operation, const Var& x, const ReduceAttributes& attributes,
                     bool keep_axes, DType dtype, const Where& where);

/// A result of a reduction, or its adjoint, under the shape that broadcasts with its operand's.
Var with_axes_kept(const Var& result, const Var& operand, const AxisMask& mask);

/// 1/y for y > 0 and 0 for y = 0, with derivatives; y ≥ 0.
Var inverse_or_zero(const Var& y);

/// x with the reduced axes as axis 1 of three, moved together when others lie between them.
Var merge_axes(const Var& x, const AxisMask& mask);
/// Undoes `merge_axes` of an operand of that shape.
Var unmerge_axes(const Var& merged, const Shape& shape, const AxisMask& mask);

/// A tensor as a reduction walks it. Results lie in `groups` of `columns` side by side; each is
/// made of `rows` elements, of which `run` at a time lie one below the other, `columns` apart.
class ReductionWalk {
 public:
  ReductionWalk(const Shape& shape, const AxisMask& mask);

  std::int64_t groups() const { return groups_; }
  std::int64_t columns() const { return columns_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t run() const { return run_; }
  /// Where the first element of group `group` lies.
  std::int64_t group_offset(std::int64_t group) const { return offset(kept_, group); }
  /// How far row `row` lies from the first.
  std::int64_t row_offset(std::int64_t row) const {
    return row % run_ * columns_ + offset(reduced_, row / run_);
  }

 private:
  struct Walk {
    std::array<std::int64_t, max_rank> sizes{};
    std::array<std::int64_t, max_rank> strides{};
    std::size_t rank = 0;
  };
  static std::int64_t offset(const Walk& walk, std::int64_t index) {
    std::int64_t result = 0;
    for (std::size_t axis = walk.rank; axis-- > 0;) {
      result += index % walk.sizes[axis] * walk.strides[axis];
      index /= walk.sizes[axis];
    }
    return result;
  }

  Walk kept_;
  Walk reduced_;
  std::int64_t groups_ = 1;
  std::int64_t columns_ = 1;
  std::int64_t rows_ = 1;
  std::int64_t run_ = 1;
};

}  // namespace palimpsest
