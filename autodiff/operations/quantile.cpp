#include <algorithm>
#include <cmath>
#include <vector>

#include "autodiff/enumerators.h"
#include "autodiff/number_text.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/index.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/sorting.h"
#include "autodiff/operations/unary.h"
#include "autodiff/recording_guards.h"

namespace palimpsest {
namespace {

/// x as lines along its last axis.
Var quantile_lines(const Var& x, std::optional<int> axis, const char* operation,
                   const Where& where) {
  require_floating(x, operation, where);
  const Shape shape = x.shape();
  if (!axis) return reshape(x, {shape.elements()}, where);
  const int wrapped = shape.wrap(*axis, operation, where);
  return wrapped == shape.rank() - 1 ? x : transpose(x, wrapped, -1, where);
}

void require_elements(const Var& x, const Var& lines, const char* operation, const Where& where) {
  if (lines.shape()[-1] > 0) return;
  throw ShapeError(operation,
                   "shape " + to_string(x.shape()) +
                       " has no elements to choose from; check for empty tensors first",
                   where);
}

void require_method(QuantileMethod method, const char* operation, const Where& where) {
  using enum QuantileMethod;
  require_enumerator(method, {linear, lower, higher, midpoint, nearest}, operation, "the method",
                     where);
}

void require_share(double q, const char* operation, const Where& where) {
  if (q >= 0 && q <= 1) return;
  throw ArgumentError(operation, "q is " + number_text(q) + "; give a number from 0 to 1", where);
}

Shape with_ones(int rank) {
  Shape shape;
  while (shape.rank() < rank) shape.push_back(1);
  return shape;
}

/// `y` holds one element per line of x. Returns it with x's axes, without the reduced ones or with
/// size 1 for these.
Var quantile_result(const Var& y, const Var& x, std::optional<int> axis, bool keep_axis,
                    const Where& where) {
  const int rank = x.rank();
  if (!axis) return keep_axis ? reshape(y, with_ones(rank), where) : y;
  const int wrapped = x.shape().wrap(*axis);
  Var kept = unsqueeze(y, rank - 1, where);
  if (wrapped != rank - 1) kept = transpose(kept, wrapped, -1, where);
  return keep_axis ? kept : squeeze(kept, {wrapped}, where);
}

/// The two elements around a rank, and the share of the higher one.
struct Neighbours {
  double low, high, share;
};
Neighbours neighbours_of(double rank, QuantileMethod method) {
  const double low = std::floor(rank);
  const double high = std::ceil(rank);
  switch (method) {
    case QuantileMethod::linear:
      return {low, high, rank - low};
    case QuantileMethod::lower:
      return {low, low, 0};
    case QuantileMethod::higher:
      return {high, high, 0};
    case QuantileMethod::midpoint:
      return {low, high, 0.5};
    case QuantileMethod::nearest:
      return {std::nearbyint(rank), std::nearbyint(rank), 0};
  }
  throw InternalError("unknown method of quantiles");
}

/// The number between `low` and `high` at `share` of the way, computed from the nearer end.
/// Differences of 16-bit numbers are computed in f32, so that only the result is rounded.
Var between(const Var& low, const Var& high, double share, const Where& where) {
  if (share == 0) return low;
  const DType dtype = compute_dtype(low.dtype());
  const Var first = cast(low, dtype, where);
  const Var second = cast(high, dtype, where);
  const Var step = second - first;
  const Var y = share < 0.5 ? first + step * share : second - step * (1 - share);
  return cast(y, low.dtype(), where);
}
/// Likewise, at a share for each number.
Var between(const Var& low, const Var& high, const Var& share, const Where& where) {
  const DType dtype = compute_dtype(low.dtype());
  const Var first = cast(low, dtype, where);
  const Var second = cast(high, dtype, where);
  const Var step = second - first;
  const Var y =
      palimpsest::where(share < 0.5, first + step * share, second - step * (1 - share), where);
  // At whole ranks both are one element, whose difference with itself may be NaN.
  return cast(palimpsest::where(share > 0.0, y, first, where), low.dtype(), where);
}

/// One quantile of sorted lines whose last element is `last`.
Var quantile_of_sorted(const Var& sorted, const Var& last, double q, QuantileMethod method,
                       const Where& where) {
  const std::int64_t n = sorted.shape()[-1];
  const Neighbours at = neighbours_of(q * static_cast<double>(n - 1), method);
  const Var low = select(sorted, -1, static_cast<std::int64_t>(at.low), where);
  const Var high =
      at.high == at.low ? low : select(sorted, -1, static_cast<std::int64_t>(at.high), where);
  const Var found = at.high == at.low ? low : between(low, high, at.share, where);
  return palimpsest::where(equal(last, last), found, last, where);  // NaN comes last
}

/// Sorted lines, the positions they came from, and the number of elements that are not NaN (…, 1).
struct Counted {
  ValuesAndIndices sorted;
  Var count;
};
Counted count_numbers(const Var& lines, const Where& where) {
  return {sort(lines, -1, false, where), sum(equal(lines, lines), {-1}, true, where)};
}

/// One element of each line, at `places` (…, 1).
Var at_places(const Var& lines, const Var& places, const Where& where) {
  return squeeze(gather(lines, -1, places, where), {-1}, where);
}

}  // namespace

Var quantile(const Var& x, std::span<const double> qs, const QuantileOptions& options,
             Where where) {
  const Var lines = quantile_lines(x, options.axis, "quantile", where);
  require_elements(x, lines, "quantile", where);
  require_method(options.method, "quantile", where);
  const Blame blame(lines.tape().recording(), where);
  for (const double q : qs) require_share(q, "quantile", where);
  if (qs.empty()) throw ArgumentError("quantile", "there is no q; give at least one", where);
  const Var sorted = sort(lines, -1, false, where).values;
  const Var last = select(sorted, -1, -1, where);
  std::vector<Var> found;
  for (const double q : qs) {
    const Var y = quantile_of_sorted(sorted, last, q, options.method, where);
    found.push_back(quantile_result(y, x, options.axis, options.keep_axis, where));
  }
  return stack(found, 0, where);
}

Var quantile(const Var& x, double q, const QuantileOptions& options, Where where) {
  return squeeze(quantile(x, {&q, 1}, options, where), {0}, where);
}

Var nanquantile(const Var& x, double q, const QuantileOptions& options, Where where) {
  const Var lines = quantile_lines(x, options.axis, "nanquantile", where);
  require_elements(x, lines, "nanquantile", where);
  require_share(q, "nanquantile", where);
  require_method(options.method, "nanquantile", where);
  const Blame blame(lines.tape().recording(), where);
  const auto [sorted, count] = count_numbers(lines, where);
  // Ranks depend on values here, so the arithmetic of `neighbours_of` is recorded. Without numbers,
  // the rank is 0, where a NaN is.
  const Var rank = maximum(cast(count, DType::f64, where) - 1.0, 0.0) * q;
  const Var low = floor(rank);
  const Var high = ceil(rank);
  const auto element = [&](const Var& place) {
    return at_places(sorted.values, cast(place, DType::i64, where), where);
  };
  Var y;
  switch (options.method) {
    case QuantileMethod::lower:
      y = element(low);
      break;
    case QuantileMethod::higher:
      y = element(high);
      break;
    case QuantileMethod::nearest:
      y = element(round(rank));
      break;
    case QuantileMethod::midpoint:
      y = between(element(low), element(high), 0.5, where);
      break;
    case QuantileMethod::linear: {
      const DType dtype = compute_dtype(x.dtype());
      const Var share = squeeze(cast(rank - low, dtype, where), {-1}, where);
      y = between(element(low), element(high), share, where);
      break;
    }
  }
  return quantile_result(y, x, options.axis, options.keep_axis, where);
}

ValuesAndIndices nanmedian(const Var& x, int axis, bool keep_axis, Where where) {
  const Var lines = quantile_lines(x, axis, "nanmedian", where);
  require_elements(x, lines, "nanmedian", where);
  const Blame blame(lines.tape().recording(), where);
  const auto [sorted, count] = count_numbers(lines, where);
  const Var middle = maximum(count - 1.0, 0.0) / 2.0;
  const auto result = [&](const Var& of) {
    return quantile_result(at_places(of, middle, where), x, axis, keep_axis, where);
  };
  return {result(sorted.values), result(sorted.indices)};
}

Var nanmedian(const Var& x, Where where) {
  require_value(x, "nanmedian", where);
  return nanmedian(reshape(x, {x.shape().elements()}, where), 0, false, where).values;
}

}  // namespace palimpsest
