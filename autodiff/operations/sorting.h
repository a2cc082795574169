#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>

#include "autodiff/export.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/var.h"

/// Sorting, order statistics and search. Elements have a total order: NaN is larger than every
/// number, all NaN are equal, and −0 equals 0. Positions are i64 and have no derivative. Negative
/// axes count from the end. Axes that do not exist throw `ShapeError`.
namespace palimpsest PALIMPSEST_EXPORT {

/// The elements along `axis` in ascending order, or descending, and the positions they came from.
/// The sort is stable in both directions: equal elements keep their order. Any dtype. Throws
/// `ShapeError` for an axis of more than 2³² − 1 elements.
///
/// Lines of up to 64 elements are sorted by counting smaller ones, longer lines by radix. The time
/// is linear in the length.
ValuesAndIndices sort(const Var& x, int axis = -1, bool descending = false,
                      Where where = Where::current());
/// The positions of `sort`.
Var argsort(const Var& x, int axis = -1, bool descending = false, Where where = Where::current());

/// The positions along the last axis in the order of several keys, which are along the first axis:
/// keys (k, …, n), positions (…, n). The last key counts most, as in NumPy; positions with equal
/// keys keep their order. Any dtype. Throws `ShapeError` for fewer than two axes and for more than
/// 2³² − 1 positions.
Var lexsort(const Var& keys, Where where = Where::current());

struct TopkOptions {
  int axis = -1;
  bool largest = true;  ///< false: the smallest elements
};
/// The first `k` elements of `sort`, in its order: the k largest elements, from large to small, and
/// their positions. The first ones of equal elements are taken. Throws as `sort`, and
/// `ArgumentError` unless k is in [0, size of the axis].
ValuesAndIndices topk(const Var& x, std::int64_t k, const TopkOptions& options = {},
                      Where where = Where::current());
/// Likewise along an axis, of a Var or a tensor, as in `topk(x, 5, 1)`.
template <class X>
auto topk(const X& x, std::int64_t k, std::same_as<int> auto axis, bool largest = true,
          Where where = Where::current()) {
  return topk(x, k, TopkOptions{.axis = axis, .largest = largest}, where);
}

/// The k-th smallest element along `axis`, counted from 1, and its position: element k − 1 of
/// `sort`. The axis is removed, or kept with size 1. Throws as `sort`, and `ArgumentError` unless k
/// is in [1, size of the axis].
ValuesAndIndices kthvalue(const Var& x, std::int64_t k, int axis = -1, bool keep_axis = false,
                          Where where = Where::current());

/// The median along `axis` and its position. For an even number of elements it is the lower one of
/// the two in the middle, as in PyTorch; NumPy's mean of both is `quantile(x, 0.5, {.axis =
/// axis})`. The first NaN, if there is one. Throws as `sort`, and `ShapeError` for an empty axis.
ValuesAndIndices median(const Var& x, int axis, bool keep_axis = false,
                        Where where = Where::current());
/// The median of all elements.
Var median(const Var& x, Where where = Where::current());
/// The median of the elements that are not NaN; NaN if there are none. Floating dtypes.
ValuesAndIndices nanmedian(const Var& x, int axis, bool keep_axis = false,
                           Where where = Where::current());
Var nanmedian(const Var& x, Where where = Where::current());

/// How `quantile` interpolates between the two elements next to rank q·(n − 1).
enum class QuantileMethod : std::uint8_t {
  linear,    ///< by the fraction of the rank
  lower,     ///< the lower element
  higher,    ///< the higher element
  midpoint,  ///< their mean
  nearest,   ///< the nearer one; the one with the even position if both are equally near
};
struct QuantileOptions {
  /// Over all elements if there is none.
  std::optional<int> axis = std::nullopt;
  bool keep_axis = false;
  QuantileMethod method = QuantileMethod::linear;
};
/// The q-th quantile, q in [0, 1]: the element at rank q·(n − 1) of `sort`. NaN where an element is
/// NaN. Throws `DTypeError` for dtypes that are not floating, `ArgumentError` for q outside [0, 1],
/// `ShapeError` for no elements.
Var quantile(const Var& x, double q, const QuantileOptions& options = {},
             Where where = Where::current());
/// Several quantiles of one sort, along a new first axis.
Var quantile(const Var& x, std::span<const double> qs, const QuantileOptions& options = {},
             Where where = Where::current());
/// The quantile of the elements that are not NaN; NaN where there are none. Otherwise as
/// `quantile`.
Var nanquantile(const Var& x, double q, const QuantileOptions& options = {},
                Where where = Where::current());

/// The positions at which the elements of `values` can be inserted into `sorted` so that the order
/// is kept. A position is the number of elements that are less or, with `right`, less or equal.
/// `sorted` has one axis, or the axes of `values` with another last one. It ascends along the last
/// axis, which is not checked. Operands are promoted to a common dtype. Throws `ShapeError` for
/// other shapes.
Var searchsorted(const Var& sorted, const Var& values, bool right = false,
                 Where where = Where::current());
/// `searchsorted` with the operands the other way round: the number of the bucket between
/// `boundaries`. With `right`, a bucket includes its lower boundary instead of its upper one.
Var bucketize(const Var& values, const Var& boundaries, bool right = false,
              Where where = Where::current());

struct BincountOptions {
  /// Adds these, of x's shape, instead of 1.
  Var weights = {};
  /// The smallest length of the result.
  std::int64_t minlength = 0;
  /// The length of the result. Nothing is then evaluated when the operation is recorded.
  std::optional<std::int64_t> size = std::nullopt;
};
/// How often each of 0, 1, 2 … occurs in x, which is integer and of any shape. i64, or sums of the
/// weights in their dtype.
///
/// Without `size`, the length of the result is the largest element plus one, so x is evaluated when
/// the operation is recorded (see `nonzero`). Throws `DTypeError` for an x that is not integer,
/// `ShapeError` for weights of another shape. The kernel throws `ArgumentError` for an element that
/// is negative or does not fit `size`.
Var bincount(const Var& x, const BincountOptions& options = {}, Where where = Where::current());

/// Result of `histogram`.
struct Histogram {
  Var counts;  ///< (bins)
  Var edges;   ///< (bins + 1)
};
/// The least and the largest number that are counted.
struct HistogramRange {
  double low = 0;
  double high = 0;
};
struct HistogramOptions {
  /// From the smallest to the largest element if there is none; 1 is added at both ends if these
  /// are equal.
  std::optional<HistogramRange> range = std::nullopt;
  Var weights = {};      ///< adds these, of x's shape, instead of 1
  bool density = false;  ///< divides by the total and by the widths, so that the integral is 1
};
/// How many elements of x lie in each of `bins` intervals of equal width, with their lower edge.
/// The last one also has its upper edge. Elements outside and NaN are not counted; without a range,
/// x must be finite. The counts have x's dtype, or that of the weights, which may be
/// differentiated. They have no derivative with respect to x.
///
/// Throws `DTypeError` for an x that is not floating. Throws `ArgumentError` for fewer than one
/// bin, and for a range that is not finite or not ascending. Throws `ShapeError` for weights of
/// another shape, and for an empty x without a range.
Histogram histogram(const Var& x, std::int64_t bins, const HistogramOptions& options = {},
                    Where where = Where::current());
/// Likewise between given edges (bins + 1), which ascend.
Histogram histogram(const Var& x, const Var& edges, const HistogramOptions& options = {},
                    Where where = Where::current());
/// The counts of `histogram` in [low, high], or from the smallest to the largest element where low
/// and high are equal, as PyTorch's `histc`. Throws as `histogram`.
Var histc(const Var& x, std::int64_t bins = 100, double low = 0, double high = 0,
          Where where = Where::current());

struct UniqueOptions {
  bool inverse = false;  ///< returns for each element of x its position among the values
  bool counts = false;   ///< returns how often each value occurs
  /// The number of values, if it is known. Nothing is then evaluated when the operation is
  /// recorded.
  std::optional<std::int64_t> size = std::nullopt;
  /// Finds the distinct slices along this axis instead of the distinct elements.
  std::optional<int> axis = std::nullopt;
};
/// Result of `unique`; values that were not asked for are empty handles.
struct Unique {
  Var values;
  Var inverse;  ///< i64, of x's shape, or one for each slice
  Var counts;   ///< i64, one for each value or slice
};
/// The distinct elements of x in ascending order, or its distinct slices along an axis, by their
/// first elements that differ. Each NaN is a value of its own, as in PyTorch. The derivative flows
/// to the first of equal elements. The number of values depends on x, so x is
/// evaluated when the operation is recorded; see `nonzero`, also for other numbers of values in
/// later runs.
Unique unique(const Var& x, const UniqueOptions& options = {}, Where where = Where::current());
/// The first element of each run of equal elements of x, which is read in row-major order, or the
/// first of equal adjacent slices along an axis.
Unique unique_consecutive(const Var& x, const UniqueOptions& options = {},
                          Where where = Where::current());

}  // namespace palimpsest
