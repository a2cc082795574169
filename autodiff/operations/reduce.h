#pragma once

#include "autodiff/export.h"
#include "autodiff/var.h"

/// Reductions over the given `axes`, or over all axes if `axes` is empty. Negative axes count from
/// the end. Reduced axes are removed or, with `keep_axes`, kept with size 1. Axes that do not exist
/// or are repeated throw `ShapeError`. Results have x's dtype unless stated otherwise. Sums of f32
/// are totalled in f64; sums of 16-bit types in f32 and then f64. The order of addition is
/// determined by the shape.
namespace palimpsest PALIMPSEST_EXPORT {

/// Elements that were chosen along an axis, and their positions (i64), which have no derivative.
struct ValuesAndIndices {
  Var values;
  Var indices;
};

/// Σ x; 0 if empty. i64 and i32 wrap around and keep their dtype. The sum of narrower integers is
/// i64. The sum of bool is i64 too, and counts true elements.
Var sum(const Var& x, const Axes& axes = {}, bool keep_axes = false,
        Where where = Where::current());

/// Σ x / n. Throws `ShapeError` for the mean of no elements; PyTorch returns NaN, which is harder
/// to trace back. Throws `DTypeError` for integers and bool.
Var mean(const Var& x, const Axes& axes = {}, bool keep_axes = false,
         Where where = Where::current());

/// Π x; 1 if empty; i64 for bool and narrow integers. The derivative is correct where factors are
/// zero.
Var prod(const Var& x, const Axes& axes = {}, bool keep_axes = false,
         Where where = Where::current());

/// The largest element; NaN takes precedence. The derivative flows to the first of equal elements.
/// Throws `ShapeError` for no elements, `DTypeError` for bool.
Var max(const Var& x, const Axes& axes = {}, bool keep_axes = false,
        Where where = Where::current());
/// The smallest element; otherwise like `max`.
Var min(const Var& x, const Axes& axes = {}, bool keep_axes = false,
        Where where = Where::current());

/// Position of the element that `max` returns, the first of equal ones. It is an i64, counted along
/// the axis, or in row-major order along the reduced axes if there are several. No derivative.
/// Throws as `max`.
Var argmax(const Var& x, const Axes& axes = {}, bool keep_axes = false,
           Where where = Where::current());
Var argmin(const Var& x, const Axes& axes = {}, bool keep_axes = false,
           Where where = Where::current());

/// Σ (x − mean)² / (n − correction). Throws `ArgumentError` unless n > correction ≥ 0. Otherwise
/// the result would be 0/0 or negative, where PyTorch returns NaN or infinities. So it throws for
/// no elements, and for a single one unless correction is less than 1. Throws `DTypeError` for
/// dtypes that are not floating.
Var variance(const Var& x, const Axes& axes = {}, double correction = 1, bool keep_axes = false,
             Where where = Where::current());
/// √variance. Its derivative is defined as 0 where it is 0. Throws as `variance`.
Var standard_deviation(const Var& x, const Axes& axes = {}, double correction = 1,
                       bool keep_axes = false, Where where = Where::current());

/// (Σ |x|ᵖ)^(1/p) for p ≥ 1; for p = ∞ the largest |x|. The derivative is defined as 0 where the
/// norm is 0, and for p = 1 where an element is 0. For p = ∞ it flows to the first of equal
/// elements.
///
/// Throws `ArgumentError` for p < 1, which is not a norm: the triangle inequality fails and
/// derivatives are infinite at 0. Use `sum(pow(abs(x), p))` instead, or `sum(not_equal(x, 0))` for
/// counting. Throws `DTypeError` for dtypes that are not floating.
Var norm(const Var& x, double p = 2, const Axes& axes = {}, bool keep_axes = false,
         Where where = Where::current());

/// log Σ exp x, without overflow; −∞ if empty. Throws `DTypeError` for dtypes that are not
/// floating.
Var logsumexp(const Var& x, const Axes& axes = {}, bool keep_axes = false,
              Where where = Where::current());

/// Cumulative sums along `axis`, including each element; from the end if `reverse`. Sums of bool
/// and of narrow integers are i64.
Var cumsum(const Var& x, int axis, bool reverse = false, Where where = Where::current());

/// Cumulative products along `axis`, including each element; from the end if `reverse`. Products of
/// bool and narrow integers are i64. The derivative is correct where factors are zero.
Var cumprod(const Var& x, int axis, bool reverse = false, Where where = Where::current());

/// The largest element up to and including each position along `axis`, or from it on if `reverse`,
/// and its position. NaN takes precedence. The position and the derivative are those of the last
/// one read of equal elements, as in PyTorch. Throws `DTypeError` for bool.
ValuesAndIndices cummax(const Var& x, int axis, bool reverse = false,
                        Where where = Where::current());
/// The smallest element; otherwise like `cummax`.
ValuesAndIndices cummin(const Var& x, int axis, bool reverse = false,
                        Where where = Where::current());

/// log Σ exp x over the elements up to and including each position along `axis`, or from it on if
/// `reverse`, without overflow. An element of −∞ has the derivative 0. Throws `DTypeError` for
/// dtypes that are not floating.
Var logcumsumexp(const Var& x, int axis, bool reverse = false, Where where = Where::current());

/// The linear recurrence hᵢ = aᵢ·hᵢ₋₁ + bᵢ along `axis`, with h₀ = b₀; from the end if `reverse`.
/// It is what state-space models compute, and an associative scan in JAX. Operands broadcast and
/// are promoted. The first aᵢ is not used. Throws `ShapeError` when the shapes do not broadcast,
/// `DTypeError` for dtypes that are not floating.
Var linear_recurrence(const Var& a, const Var& b, int axis, bool reverse = false,
                      Where where = Where::current());

/// True if every element is true, also if there are none. Throws `DTypeError` for numbers, which
/// would mean "not 0": write the comparison instead, as in `all(x > 0)` or `all(not_equal(x, 0))`.
Var all(const Var& x, const Axes& axes = {}, bool keep_axes = false,
        Where where = Where::current());
/// True if any element is true; false if there are none. Throws `DTypeError` for numbers, as `all`
/// does.
Var any(const Var& x, const Axes& axes = {}, bool keep_axes = false,
        Where where = Where::current());

}  // namespace palimpsest
