#pragma once

#include "autodiff/var.h"

/// Reductions. `axes` names what is reduced, all axes when it is empty; negative ones count from
/// the end. Reduced axes are removed, or kept with size 1. An axis that is not there or named twice
/// throws `ShapeError`. Sums of f32 are totalled in f64, those of 16-bit types in f32 and then f64;
/// the order of addition is fixed by the shape.
namespace palimpsest {

/// Σ x; 0 of nothing. Integers wrap around and stay of their dtype; the sum of bool is i64 and
/// counts what is true.
Var sum(const Var& x, const Axes& axes = {}, bool keep_axes = false,
        Where where = Where::current());

/// Σ x / n. Throws `ShapeError` for the mean of nothing, which no number is: PyTorch's is NaN,
/// which shows much later and elsewhere. Throws `DTypeError` for integers.
Var mean(const Var& x, const Axes& axes = {}, bool keep_axes = false,
         Where where = Where::current());

/// Π x; 1 of nothing, i64 of bool. The derivative is right where factors are zero.
Var prod(const Var& x, const Axes& axes = {}, bool keep_axes = false,
         Where where = Where::current());

/// The largest element. A NaN wins. Among equal ones the first has the derivative. Throws
/// `ShapeError` for the maximum of nothing.
Var max(const Var& x, const Axes& axes = {}, bool keep_axes = false,
        Where where = Where::current());
/// The smallest element, as `max` has the largest.
Var min(const Var& x, const Axes& axes = {}, bool keep_axes = false,
        Where where = Where::current());

/// Where `max` found its element, the first among equal ones: i64, counted along the axis, or along
/// the reduced axes in row-major order when there are several. No derivative.
Var argmax(const Var& x, const Axes& axes = {}, bool keep_axes = false,
           Where where = Where::current());
Var argmin(const Var& x, const Axes& axes = {}, bool keep_axes = false,
           Where where = Where::current());

/// Σ (x − mean)² / (n − correction). Throws `ArgumentError` unless n > correction ≥ 0, so for the
/// variance of nothing, and of one element unless correction is 0: it would be 0/0 or negative,
/// where PyTorch gives NaN or infinities.
Var variance(const Var& x, const Axes& axes = {}, double correction = 1, bool keep_axes = false,
             Where where = Where::current());
/// √variance; its derivative is taken as 0 where it is 0.
Var standard_deviation(const Var& x, const Axes& axes = {}, double correction = 1,
                       bool keep_axes = false, Where where = Where::current());

/// (Σ |x|ᵖ)^(1/p) for p ≥ 1; for p = ∞ the largest |x|. The derivative is taken as 0 where the norm
/// is 0, and where an element is 0 for p = 1; for p = ∞ it goes to the first of equal elements.
/// Throws `ArgumentError` for p < 1, which makes no norm: the triangle inequality fails and
/// derivatives are infinite at 0. `sum(pow(abs(x), p))` says what is wanted there,
/// `sum(not_equal(x, 0))` counts.
Var norm(const Var& x, double p = 2, const Axes& axes = {}, bool keep_axes = false,
         Where where = Where::current());

/// log Σ exp x, without overflow; −∞ of nothing.
Var logsumexp(const Var& x, const Axes& axes = {}, bool keep_axes = false,
              Where where = Where::current());

/// Sums of the elements up to and including each along `axis`; from the end when `reverse`. Those
/// of bool are i64.
Var cumsum(const Var& x, int axis, bool reverse = false, Where where = Where::current());

/// Whether every element is true; true of nothing. Throws `DTypeError` for numbers, where it would
/// say "not 0": write the comparison that is meant, as in `any(x > 0)` or `any(not_equal(x, 0))`.
Var all(const Var& x, const Axes& axes = {}, bool keep_axes = false,
        Where where = Where::current());
/// Whether some element is true; false of nothing. Throws `DTypeError` for numbers, as `all` does.
Var any(const Var& x, const Axes& axes = {}, bool keep_axes = false,
        Where where = Where::current());

}  // namespace palimpsest
