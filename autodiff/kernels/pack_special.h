#pragma once

#include <cmath>
#include <numbers>

#include "autodiff/kernels/pack_lanes.h"
#include "autodiff/kernels/pack_logarithm.h"
#include "autodiff/kernels/special_functions.h"

/// Special functions of f64 packs. docs/accuracy.md states the errors.
namespace palimpsest::PALIMPSEST_LEVEL {

/// log |Γ(x)| for 1 ≤ x ≤ 2.5 as base + v·(slope + v·P(v)), with another P around each of three
/// centers. `distance` is x − 1.
[[gnu::always_inline]] inline Format<double>::Vector log_gamma_near(
    const Format<double>::Vector& distance) {
  using Vector = Format<double>::Vector;
  struct Center {
    double at, base, base_low, slope, slope_low;
    double rest[18];
  };
  // 1, the minimum of the function, and 2
  constexpr Center first{
      0,
      0,
      0,
      -0x1.2788cfc6fb619p-1,
      0x1.6cb90701fbfabp-58,
      {0x1.a51a6625307d3p-1, -0x1.9a4d55beab2d7p-2, 0x1.151322ac7d7f3p-2, -0x1.a8b9c17aa60b8p-3,
       0x1.5b40cb102127ep-3, -0x1.2703a1dcfcfecp-3, 0x1.010b369fae2a2p-3, -0x1.c80670505f81ap-4,
       0x1.9a01ef7f166a5p-4, -0x1.748c3e26d90bdp-4, 0x1.55684d4869e45p-4, -0x1.3b1b39404e6bfp-4,
       0x1.24e7379a1f1adp-4, -0x1.115eb4e9589dap-4, 0x1.f482d90d21acdp-5, -0x1.d7069903a32bbp-5,
       0x1.1b23568ffcc13p-4, -0x1.0c50b0eca2b12p-4}};
  constexpr Center middle{
      0x1.d8b618d5af8fcp-2,
      -0x1.f19b9bcc38a42p-4,
      0x1.f095c88d5a6cdp-59,
      -0x1.aa2d9b3ce29e0p-54,
      0,
      {0x1.ef72bc8ee38acp-2, -0x1.2e4278dc6bc25p-3, 0x1.08b4294d50382p-4, -0x1.0c9a8df51316bp-5,
       0x1.266e797a0a36dp-6, -0x1.51f9f9501b81dp-7, 0x1.8fce02b20a717p-8, -0x1.e2f1a3f8bd0fap-9,
       0x1.2831202b20a71p-9, -0x1.6f977c1ad7758p-10, 0x1.cc724328ea710p-11, -0x1.228fe5a532190p-11,
       0x1.710a4eda66a06p-12, -0x1.d6d048e011e9bp-13, 0x1.2ce02541ea955p-13, -0x1.8ae30fa9c5b0dp-14,
       0x1.15430bf6bd288p-14, -0x1.27fd02d601be0p-15}};
  constexpr Center last{
      1,
      0,
      0,
      0x1.b0ee6072093cep-2,
      0x1.6cb90701fbfabp-58,
      {0x1.4a34cc4a60fa6p-2, -0x1.13e001a557607p-4, 0x1.51322ac7d8482p-6, -0x1.e404fc218f58fp-8,
       0x1.7add6eadb72e7p-9, -0x1.38ac5c2c053b1p-10, 0x1.0b36af85dd23dp-11, -0x1.d3fd4c6043195p-13,
       0x1.a127b11b538f9p-14, -0x1.78de665efaf75p-15, 0x1.580de1caa7436p-16, -0x1.3cba1b671d716p-17,
       0x1.258bef2bad1e6p-18, -0x1.11edeec25fc6bp-19, 0x1.028434e149fa7p-20, -0x1.e61a55451512ap-22,
       0x1.8ddb1b0f4cfdfp-23, -0x1.7c30cb58956afp-25}};
  const auto below = distance < 0.23;
  const auto above = distance > 0.73;
  const auto pick = [&](double a, double b, double c) {
    return below ? a - Vector{} : above ? c - Vector{} : b - Vector{};
  };
  const Vector v = distance - pick(first.at, middle.at, last.at);
  Vector rest = pick(first.rest[17], middle.rest[17], last.rest[17]);
  for (int i = 16; i >= 0; --i) {
    rest = rest * v + pick(first.rest[i], middle.rest[i], last.rest[i]);
  }
  const Vector low = pick(first.slope_low, middle.slope_low, last.slope_low) + v * rest;
  const Vector slope = pick(first.slope, middle.slope, last.slope) + low;
  return pick(first.base, middle.base, last.base) +
         (pick(first.base_low, middle.base_low, last.base_low) + v * slope);
}

/// log |Γ(x)|. For x ≤ 0.77 and 2.5 < x < 8 from log |Γ| between 1 and 2.5 and the logarithm of the
/// factors, for x ≥ 8 by Stirling's series. The C library computes x ≤ 0.
inline Pack<double> log_gamma(const Pack<double>& x) {
  using F = Format<double>;
  using Vector = F::Vector;
  constexpr double series[] = {
      0x1.5555555555555p-4,  -0x1.6c16c16c149f4p-9,  0x1.a01a017dcf8bbp-11, -0x1.38134d4f78e41p-11,
      0x1.b92c33f2bdc71p-11, -0x1.ef8d73e42dc40p-10, 0x1.4bffc6a523a3dp-8};
  const Vector lanes = x.lanes();
  const auto small = lanes < 0.77;
  const auto large = lanes >= 8;
  Vector factors = 1 - Vector{};
  Vector rest = large ? 2 - Vector{} : lanes;
  for (int i = 0; i < 6; ++i) {
    const auto far = rest > 2.5;
    rest = far ? rest - 1 : rest;
    factors = far ? factors * rest : factors;
  }
  const Vector near = log_gamma_near(small ? lanes : rest - 1);
  const auto [f, exponent, biased] = split_positive<double>(small | large ? lanes : factors);
  // The logarithm is high + low.
  const Vector high = exponent * ExponentialRange<double>::high + f;
  const Vector lost = (exponent * ExponentialRange<double>::high - high) + f;
  const Vector low =
      rest_of_logarithm<double>(f) + (exponent * ExponentialRange<double>::low + lost);
  const Vector sum = small ? (near - low) - high : high + (low + near);
  const Vector inverse = 1 / lanes;
  const Vector tail =
      0x1.acfe390c97d69p-2 + inverse * polynomial(Vector(inverse * inverse), series);
  const Vector count = lanes - 0.5;
  const Pack<double> y(large ? count * (high - 1) + (count * low + tail) : sum);
  const auto other = ~((lanes > 0.0) & (lanes < F::infinity));
  return any_of(other) ? replace_lanes(palimpsest::log_gamma, other, x, y) : y;
}

/// ψ for x > 0. On [1, 2] it is a rational function times the distance from the root (Boost.Math,
/// J. Maddock), for x ≥ 10 an asymptotic series.
[[gnu::always_inline]] inline Format<double>::Vector digamma_of_positive(
    const Format<double>::Vector& x) {
  using Vector = Format<double>::Vector;
  // The root in three parts.
  constexpr double root[] = {1569415565.0 / 1073741824.0, 381566830.0 / 1073741824.0 / 1073741824.0,
                             0.9016312093258695918615325266959189453125e-19};
  constexpr double above[] = {0.25479851061131551,  -0.32555031186804491,  -0.65031853770896507,
                              -0.28919126444774784, -0.045251321448739056, -0.0020713321167745952};
  constexpr double below[] = {1.0,
                              2.0767117023730469,
                              1.4606242909763515,
                              0.43593529692665969,
                              0.054151797245674225,
                              0.0021284987017821144,
                              -0.55789841321675513e-6};
  // −B₂ₖ/(2k), the coefficients of ψ(x) − log x + 1/(2x) in powers of 1/x²
  constexpr double tail[] = {-1.0 / 12,  1.0 / 120,       -1.0 / 252, 1.0 / 240,
                             -1.0 / 132, 691.0 / 32760.0, -1.0 / 12};
  const auto small = x < 1;
  const auto large = x >= 10;
  const Vector inverse = 1 / x;
  Vector sum = small ? -inverse : Vector{};
  Vector near = large ? 2 - Vector{} : x;
  for (auto far = near > 2; any_of(far); far = near > 2) {
    near = far ? near - 1 : near;
    sum = far ? sum + 1 / near : sum;
  }
  const Vector beyond_one = small ? near : near - 1;
  const Vector whole = small ? near + 1 : near;
  const Vector distance = whole - root[0] - root[1] - root[2];
  const Vector rest = polynomial(beyond_one, above) / polynomial(beyond_one, below);
  const Vector y = sum + (distance * 0.99558162689208984375 + distance * rest);
  const Vector square = inverse * inverse;
  const Vector series =
      logarithm(Pack<double>(x)).lanes() - (inverse * 0.5 - square * polynomial(square, tail));
  return large ? series : y;
}

/// The digamma function ψ. Below 0, by ψ(1 − x) and the cotangent.
inline Pack<double> digamma(const Pack<double>& x) {
  const auto positive = x.lanes() > 0.0;
  const Pack<double> y(digamma_of_positive(positive ? x.lanes() : 1 - x.lanes()));
  const auto other = ~positive;
  return any_of(other) ? y + replace_lanes(reflected_digamma, other, x, Pack<double>(0.0)) : y;
}

/// The number whose error function is y. M. Wichura, "Algorithm AS 241: The percentage points of
/// the normal distribution" (1988).
inline Pack<double> inverse_erf(const Pack<double>& y) {
  using F = Format<double>;
  using Vector = F::Vector;
  constexpr double inner_above[] = {3.3871328727963666080e0, 1.3314166789178437745e2,
                                    1.9715909503065514427e3, 1.3731693765509461125e4,
                                    4.5921953931549871457e4, 6.7265770927008700853e4,
                                    3.3430575583588128105e4, 2.5090809287301226727e3};
  constexpr double inner_below[] = {1.0,
                                    4.2313330701600911252e1,
                                    6.8718700749205790830e2,
                                    5.3941960214247511077e3,
                                    2.1213794301586595867e4,
                                    3.9307895800092710610e4,
                                    2.8729085735721942674e4,
                                    5.2264952788528545610e3};
  constexpr double middle_above[] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                                     5.76949722146069140550e0,  3.64784832476320460504e0,
                                     1.27045825245236838258e0,  2.41780725177450611770e-1,
                                     2.27238449892691845833e-2, 7.74545014278341407640e-4};
  constexpr double middle_below[] = {1.0,
                                     2.05319162663775882187e0,
                                     1.67638483018380384940e0,
                                     6.89767334985100004550e-1,
                                     1.48103976427480074590e-1,
                                     1.51986665636164571966e-2,
                                     5.47593808499534494600e-4,
                                     1.05075007164441684324e-9};
  constexpr double outer_above[] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                                    1.78482653991729133580e0,  2.96560571828504891230e-1,
                                    2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                    2.71155556874348757815e-5, 2.01033439929228813265e-7};
  constexpr double outer_below[] = {1.0,
                                    5.99832206555887937690e-1,
                                    1.36929880922735805310e-1,
                                    1.48753612908506148525e-2,
                                    7.86869131145613259100e-4,
                                    1.84631831751005468180e-5,
                                    1.42151175831644588870e-7,
                                    2.04426310338993978564e-15};
  constexpr double root_half = std::numbers::sqrt2 / 2;
  const Vector lanes = y.lanes();
  const Vector magnitude = F::number(F::bits(lanes) & ~F::sign);
  const Vector half = lanes * 0.5;
  const Vector r = 0.180625 - half * half;
  const Vector inner = half * root_half * (polynomial(r, inner_above) / polynomial(r, inner_below));
  const auto in_tail = ~(magnitude <= 0.85);
  if (!any_of(in_tail)) return Pack<double>(inner);
  // For |y| = 1 the deviation is ∞ and the quotient is NaN.
  const Vector deviation =
      palimpsest::PALIMPSEST_LEVEL::root(-logarithm(Pack<double>((1 - magnitude) * 0.5))).lanes();
  const Vector near = deviation - 1.6;
  const Vector far = deviation - 5;
  const Vector middle = polynomial(near, middle_above) / polynomial(near, middle_below);
  const Vector outer = polynomial(far, outer_above) / polynomial(far, outer_below);
  const Vector tail = (deviation <= 5 ? middle : outer) * root_half;
  const Vector finite = magnitude == 1 ? F::infinity - Vector{} : tail;
  return Pack<double>(in_tail ? F::with_sign_of(lanes, finite) : inner);
}

/// Σ over k of (square/4)ᵏ/(k!·(n + 1)…(n + k)): the power series of Iₙ. Terms that are too small
/// for a lane do not change it.
[[gnu::always_inline]] inline Format<double>::Vector bessel_series(
    int n, const Format<double>::Vector& square) {
  using Vector = Format<double>::Vector;
  const Vector quarter = square * 0.25;
  Vector term = 1 - Vector{};
  Vector sum = term;
  for (int k = 0; any_of(term > sum * 0x1p-56);) {
    for (int few = 0; few < 4; ++few) {
      ++k;
      term = term * (quarter * (1 / (k * static_cast<double>(n + k))));
      sum = sum + term;
    }
  }
  return sum;
}

/// √(2πx)·exp(−x)·Iₙ(x) by its expansion in powers of 1/x. A lane ends before its terms grow.
[[gnu::always_inline]] inline Format<double>::Vector bessel_expansion(
    int n, const Format<double>::Vector& x) {
  using F = Format<double>;
  using Vector = F::Vector;
  const Vector eighth = 0.125 / x;
  Vector term = 1 - Vector{};
  Vector sum = term;
  auto adds = term > 0.0;
  for (int k = 1; k < 60 && any_of(adds); ++k) {
    const double odd = 2 * k - 1;
    const Vector next = term * (eighth * ((odd * odd - 4.0 * n * n) / k));
    const Vector size = F::number(F::bits(next) & ~F::sign);
    adds = adds & (size >= 0x1p-56);
    if (k > n) adds = adds & (size <= F::number(F::bits(term) & ~F::sign));
    term = adds ? next : term;
    sum = adds ? sum + next : sum;
  }
  return sum;
}

/// The modified Bessel function Iₙ(x) for n ≥ 0, multiplied by exp(−|x|) if `scaled`.
inline Pack<double> bessel_i(int n, bool scaled, const Pack<double>& x) {
  using F = Format<double>;
  using Vector = F::Vector;
  const Vector magnitude = F::number(F::bits(x.lanes()) & ~F::sign);
  const auto far = ~(magnitude < 30 + static_cast<double>(n) * n);
  const Vector near = far ? Vector{} : magnitude;
  Vector y = bessel_series(n, Vector(near * near));
  for (int i = 1; i <= n; ++i) y = y * (near * (1 / (2.0 * i)));
  if (scaled) y = y * decay(Pack<double>(near)).lanes();
  if (any_of(far)) {
    const Vector root = palimpsest::PALIMPSEST_LEVEL::root(Pack<double>(magnitude)).lanes();
    Vector expansion =
        bessel_expansion(n, magnitude) * (std::numbers::inv_sqrtpi / std::numbers::sqrt2) / root;
    if (!scaled) {
      const Vector half = exponential(Pack<double>(magnitude * 0.5)).lanes();
      expansion = expansion * half * half;
    }
    const Vector limit = (scaled ? 0 : F::infinity) - Vector{};
    y = far ? (magnitude == F::infinity ? limit : expansion) : y;
  }
  return Pack<double>(n % 2 != 0 ? F::with_sign_of(x.lanes(), y) : y);
}

}  // namespace palimpsest::PALIMPSEST_LEVEL
