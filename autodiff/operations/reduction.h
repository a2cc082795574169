#pragma once

#include <array>
#include <cstdint>

#include "autodiff/operations/reduce.h"

/// Shared by the reductions: the reduced axes, and the loop structure of a tensor.
namespace palimpsest {

/// Marks the axes that are reduced.
using AxisMask = std::array<bool, max_rank>;

/// The mask of `axes`; all axes if `axes` is empty. Throws `ShapeError` for an axis that the shape
/// does not have or that is repeated.
AxisMask mask_of(const Axes& axes, const Shape& shape, std::string_view operation,
                 const Where& where);

/// `shape` with the reduced axes removed, or of size 1 if `keep_axes`.
Shape reduced_shape(const Shape& shape, const AxisMask& mask, bool keep_axes);

/// Number of elements reduced into one result.
std::int64_t reduced_count(const Shape& shape, const AxisMask& mask);

/// Attributes of a reduction.
struct ReduceAttributes {
  AxisMask mask;
  double number = 0;  ///< divisor of a mean or a variance; order of a norm

  bool operator==(const ReduceAttributes& other) const {
    return mask == other.mask && same_number(number, other.number);
  }
};

/// Records a reduction of x; the results have the given dtype.
Var record_reduction(const Operation& operation, const Var& x, const ReduceAttributes& attributes,
                     bool keep_axes, DType dtype, const Where& where);

/// A result of a reduction, or its adjoint, reshaped so that it broadcasts with the operand.
Var with_axes_kept(const Var& result, const Var& operand, const AxisMask& mask);

/// 1/y for y > 0 and 0 for y = 0, differentiable; requires y ≥ 0.
Var inverse_or_zero(const Var& y);

/// Reshapes x to three axes of which axis 1 holds the reduced ones. Permutes x if they are not
/// adjacent.
Var merge_axes(const Var& x, const AxisMask& mask);
/// Inverse of `merge_axes` for an operand of the given shape.
Var unmerge_axes(const Var& merged, const Shape& shape, const AxisMask& mask);

/// The loop structure of a reduction. Results are stored in `groups` of `columns` adjacent ones.
/// Each reduces `rows` elements; runs of `run` of them are `columns` elements apart.
class ReductionWalk {
 public:
  ReductionWalk(const Shape& shape, const AxisMask& mask);

  std::int64_t groups() const { return groups_; }
  std::int64_t columns() const { return columns_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t run() const { return run_; }
  /// Offset of the first element of group `group`.
  std::int64_t group_offset(std::int64_t group) const { return offset(kept_, group); }
  /// Offset of row `row` from the first row.
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
