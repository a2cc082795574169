#pragma once

#include <limits>
#include <optional>

#include "autodiff/export.h"
#include "autodiff/var.h"

/// Elementwise functions that are made of other elementwise functions. Operands broadcast, and are
/// promoted to a common dtype. Throw `DTypeError` for dtypes that are not floating unless stated
/// otherwise.
namespace palimpsest PALIMPSEST_EXPORT {

// Conditions. The result is bool, and no derivative flows.

/// True where x is NaN, infinite, ∞, −∞, or neither NaN nor infinite. Any dtype.
Var isnan(const Var& x, Where where = Where::current());
Var isinf(const Var& x, Where where = Where::current());
Var isposinf(const Var& x, Where where = Where::current());
Var isneginf(const Var& x, Where where = Where::current());
Var isfinite(const Var& x, Where where = Where::current());
/// True where the sign bit is set, also that of −0 and NaN. Also for integers.
Var signbit(const Var& x, Where where = Where::current());

/// Tolerances of `isclose`.
struct CloseOptions {
  double relative = 1e-5;
  double absolute = 1e-8;
  bool equal_nan = false;  ///< two NaNs are close
};
/// True where |a − b| ≤ absolute + relative·|b|, and where infinities are equal.
Var isclose(const Var& a, const Var& b, const CloseOptions& options = {},
            Where where = Where::current());

/// True where exactly one of two bools is true. Throws `DTypeError` for other dtypes.
Var logical_xor(const Var& a, const Var& b, Where where = Where::current());

// Special values and signs

/// Replacements of `nan_to_num`; the default of infinities is the largest number of the dtype.
struct NanToNumOptions {
  double nan = 0;
  std::optional<double> posinf = std::nullopt;
  std::optional<double> neginf = std::nullopt;
};
/// x with NaN and infinities replaced. No derivative flows to the replaced elements.
Var nan_to_num(const Var& x, const NanToNumOptions& options = {}, Where where = Where::current());

/// The larger and the smaller operand; if one is NaN, the other one. Where both are equal, each
/// gets half of the adjoint.
Var fmax(const Var& a, const Var& b, Where where = Where::current());
Var fmin(const Var& a, const Var& b, Where where = Where::current());

/// 0 where x < 0, 1 where x > 0, `value` where x = 0, NaN where x is NaN. Derivatives flow to
/// `value` only.
Var heaviside(const Var& x, const Var& value, Where where = Where::current());

/// x limited to [low, high], which broadcast with it: `minimum(maximum(x, low), high)`. So where x
/// equals a bound, each gets half of the adjoint. A NaN of any of them stays. Also for integers.
Var clamp(const Var& x, const Var& low, const Var& high, Where where = Where::current());
/// max(x, low) and min(x, high), with derivative 1 at the bound.
Var clamp_min(const Var& x, double low, Where where = Where::current());
Var clamp_max(const Var& x, double high, Where where = Where::current());

// Arithmetic

/// x without its whole part, with the sign of x.
Var frac(const Var& x, Where where = Where::current());
/// Angles converted from radians to degrees and back.
Var rad2deg(const Var& x, Where where = Where::current());
Var deg2rad(const Var& x, Where where = Where::current());
/// x·2^exponent.
Var ldexp(const Var& x, const Var& exponent, Where where = Where::current());
/// ⌊a/b⌋, also for integers, where it is 0 if b is 0. No derivative flows.
Var floor_divide(const Var& a, const Var& b, Where where = Where::current());
/// x + value·a·b. Also for integers if `value` is whole.
Var addcmul(const Var& x, const Var& a, const Var& b, double value = 1,
            Where where = Where::current());
/// x + value·a/b.
Var addcdiv(const Var& x, const Var& a, const Var& b, double value = 1,
            Where where = Where::current());
/// a + weight·(b − a), computed such that weights 0 and 1 return a and b.
Var lerp(const Var& a, const Var& b, const Var& weight, Where where = Where::current());
Var lerp(const Var& a, const Var& b, double weight, Where where = Where::current());

// Logarithms and distributions

/// log₂(2ᵃ + 2ᵇ), without overflow.
Var logaddexp2(const Var& a, const Var& b, Where where = Where::current());
/// `logit` of x clamped to [eps, 1 − eps].
Var logit(const Var& x, double eps, Where where = Where::current());
/// log(sigmoid(x)), without overflow.
Var logsigmoid(const Var& x, Where where = Where::current());
/// −x·log(x); 0 at 0 and −∞ below.
Var entr(const Var& x, Where where = Where::current());
/// The distribution function Φ of the standard normal distribution, accurate also far below 0.
Var ndtr(const Var& x, Where where = Where::current());
/// The logarithm of the multivariate gamma function of dimension p, log(π)·p·(p − 1)/4 +
/// Σ lgamma(x − i/2) over i < p. Throws `ArgumentError` for p < 1.
Var mvlgamma(const Var& x, int p, Where where = Where::current());

// Gamma functions of two variables. They broadcast, are computed in f64 and rounded once. They
// throw `DTypeError` for dtypes that are not floating.

/// The regularized lower incomplete gamma function P(a, x) = ∫₀ˣ tᵃ⁻¹·e⁻ᵗ dt/Γ(a). NaN unless a ≥ 0
/// and x ≥ 0. It has derivatives by a, too, which PyTorch lacks.
Var igamma(const Var& a, const Var& x, Where where = Where::current());
/// The upper one, Q(a, x) = 1 − P(a, x).
Var igammac(const Var& a, const Var& x, Where where = Where::current());
/// The Hurwitz zeta function Σ (k + q)⁻ˣ over k ≥ 0, for x > 1; ∞ for x = 1. A derivative by x
/// throws `ArgumentError`.
Var zeta(const Var& x, const Var& q, Where where = Where::current());

// Activations

/// min(max(x, 0), 6); the derivative is 0 at 0 and at 6.
Var relu6(const Var& x, Where where = Where::current());
/// min(max(x + 3, 0), 6)/6.
Var hardsigmoid(const Var& x, Where where = Where::current());
/// x·hardsigmoid(x).
Var hardswish(const Var& x, Where where = Where::current());
/// x if x > 0, else a·(exp(x/a) − 1). Throws `ArgumentError` unless a > 0.
Var celu(const Var& x, double a = 1, Where where = Where::current());
/// The scaled `elu` of self-normalizing networks (Klambauer et al., 2017).
Var selu(const Var& x, Where where = Where::current());
/// x moved towards 0 by `bound`, and 0 where |x| ≤ bound. Throws `ArgumentError` for a negative
/// bound, as `hardshrink` does.
Var softshrink(const Var& x, double bound = 0.5, Where where = Where::current());
/// x, and 0 where |x| ≤ bound.
Var hardshrink(const Var& x, double bound = 0.5, Where where = Where::current());
/// x where x > bound, else `value`; NaN stays.
Var threshold(const Var& x, double bound, double value, Where where = Where::current());
/// x if x > 0, else weight·x. `weight` is a single number, or has one per element of axis 1 of x.
/// Throws `ShapeError` for others.
Var prelu(const Var& x, const Var& weight, Where where = Where::current());
/// a·sigmoid(b) for the halves a and b of x along `axis`. Throws `ShapeError` for an odd size.
Var glu(const Var& x, int axis = -1, Where where = Where::current());

}  // namespace palimpsest
