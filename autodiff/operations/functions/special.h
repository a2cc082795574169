#pragma once

#include <numbers>

#include "autodiff/export.h"
#include "autodiff/operations/functions/function.h"

// Functions that are computed in f64, also for f32 (kernels/pack_special.h; derivatives of digamma
// and spherical Bessel functions number by number). The derivatives of polygamma and Bessel
// functions are such functions of other orders. They are recorded as such, so that derivatives of
// every order are accurate.
namespace palimpsest::functions {

struct Lgamma {
  static constexpr Text text{"lgamma", "y = log|Γ(x)|, dy/dx = ψ(x)",
                             "logarithm of the gamma function", 60};
  static constexpr bool magnifies = true;
  static auto value(const auto& x) { return log_gamma(x); }
  static auto adjoint(const auto& dy, const auto& x, const auto&) { return dy * digamma(x); }
};

struct Polygamma {
  static constexpr Text text{"polygamma", "y = ψ⁽ⁿ⁾(x), dy/dx = ψ⁽ⁿ⁺¹⁾(x)",
                             "digamma function (n = 0) and its derivatives", 60};
  static constexpr bool magnifies = true;
  static const char* problem(const double* n) {
    return *n >= 0 ? nullptr : "the order is {}; give 0 for digamma, or the order of a derivative";
  }
  static auto value(const auto& x, const double* n) { return polygamma(static_cast<int>(*n), x); }
  static auto adjoint(const auto& dy, const auto& x, const auto&, const double* n) {
    return dy * polygamma(static_cast<int>(*n) + 1, x);
  }
};

struct Erfinv {
  static constexpr Text text{"erfinv", "y = erf⁻¹(x), dy/dx = √π/2·exp(y²)",
                             "inverse error function", 30};
  static constexpr bool magnifies = true;
  static constexpr double root_of_pi = 1 / std::numbers::inv_sqrtpi;
  static auto value(const auto& x) { return inverse_erf(x); }
  static auto from_y(const auto& dy, const auto& y) {
    return over_gaussian(dy * (0.5 * root_of_pi), y);
  }
  // exp(y²) magnifies the rounding error of y. The true value is y + δ, where to first order
  // δ·2/√π·exp(-y²) = erfc(|y|) - (1 - |x|). The factor 1 + 2|y|δ is 1 where y is not finite.
  static auto corrected(const auto& dy, const auto& x, const auto& y) {
    const auto rest = choose(x, 1 - x, 1 + x);
    const auto a = choose(rest, choose(y, y, -y), 0);
    const auto excess = times_gaussian((erfc(a) - rest) * a * root_of_pi, a, 1);
    return dy * stop_gradient(1 + excess);
  }
};

/// The parameters are the order and 1 if the function is multiplied by exp(-|x|), else 0.
struct BesselI {
  static constexpr Text text{"bessel_i", "y = Iₙ(x), dy/dx = (Iₙ₋₁ + Iₙ₊₁)/2",
                             "modified Bessel function, times exp(-|x|) in i0e and i1e", 100};
  static constexpr bool magnifies = true;
  static const char* problem(const double* of) {
    return of[0] >= 0 ? nullptr : "the order is {}; give 0 or more";
  }
  static auto value(const auto& x, const double* of) {
    return bessel_i(static_cast<int>(of[0]), of[1] != 0, x);
  }
  template <class V>
  static V adjoint(const V& dy, const V& x, const V& y, const double* of) {
    const int n = static_cast<int>(of[0]);
    const bool scaled = of[1] != 0;
    const V above = bessel_i(n + 1, scaled, x);
    const V slope = n == 0 ? above : (bessel_i(n - 1, scaled, x) + above) * 0.5;
    return dy * (scaled ? slope - sign(x) * y : slope);
  }
};

/// The parameters are the order and 1 for a function of π·x, else 0.
struct SphericalBesselJ {
  static constexpr Text text{"spherical_bessel_j",
                             "y = jₙ(x), dy/dx = (n·jₙ₋₁ - (n + 1)·jₙ₊₁)/(2n + 1)",
                             "spherical Bessel function; sinc is j₀(π·x)", 60};
  static const char* problem(const double* of) {
    return of[0] >= 0 ? nullptr : "the order is {}; give 0 or more";
  }
  static auto value(const auto& x, const double* of) {
    return spherical_bessel_j(static_cast<int>(of[0]), of[1] != 0, x);
  }
  template <class V>
  static V adjoint(const V& dy, const V& x, const V&, const double* of) {
    const int n = static_cast<int>(of[0]);
    const bool times_pi = of[1] != 0;
    const double scale = times_pi ? std::numbers::pi : 1;
    const V above = spherical_bessel_j(n + 1, times_pi, x);
    if (n == 0) return dy * above * -scale;
    const V below = spherical_bessel_j(n - 1, times_pi, x);
    return dy * (below * (n * scale / (2 * n + 1)) - above * ((n + 1) * scale / (2 * n + 1)));
  }
};

using Special = List<Lgamma, Polygamma, Erfinv, BesselI, SphericalBesselJ>;
template <IsIn<Special> F>
inline constexpr Place place_of<F>{Family::special, position<F, Special>};

}  // namespace palimpsest::functions

namespace palimpsest PALIMPSEST_EXPORT {

// Elementwise. Computed in f64, also for f32, whose results are then rounded. Throws `DTypeError`
// for dtypes that are not floating.

/// log |Γ(x)|; ∞ at 0, −1, …
auto lgamma(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Lgamma>(x, where);
}
/// The digamma function ψ, the derivative of `lgamma`; ∓∞ at ±0, NaN at −1, −2, …
auto digamma(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Polygamma>(x, where, {0});
}
/// The derivative of order n of `digamma`; n = 1 is the trigamma function. At 0, −1, …: ∞ for odd
/// n, NaN for even n > 0 except ∓∞ at ±0. Throws `ArgumentError` for a negative n.
auto polygamma(int n, const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Polygamma>(x, where, {static_cast<double>(n)});
}
/// The inverse of `erf`; ±∞ at ±1, NaN beyond.
auto erfinv(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Erfinv>(x, where);
}
/// The modified Bessel function Iₙ(x) of the first kind, multiplied by exp(−|x|) if `scaled`.
/// Throws `ArgumentError` for a negative n.
auto bessel_i(int n, bool scaled, const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::BesselI>(x, where, {static_cast<double>(n), scaled ? 1.0 : 0.0});
}
/// The modified Bessel functions I₀ and I₁.
auto i0(const IsVar auto& x, Where where = Where::current()) {
  return bessel_i(0, false, x, where);
}
auto i1(const IsVar auto& x, Where where = Where::current()) {
  return bessel_i(1, false, x, where);
}
/// exp(−|x|)·I₀(x) and exp(−|x|)·I₁(x), which do not overflow. The derivative of exp(−|x|) at 0 is
/// defined as 0.
auto i0e(const IsVar auto& x, Where where = Where::current()) {
  return bessel_i(0, true, x, where);
}
auto i1e(const IsVar auto& x, Where where = Where::current()) {
  return bessel_i(1, true, x, where);
}
/// The spherical Bessel function jₙ of x, or of π·x if `times_pi`. Throws `ArgumentError` for a
/// negative n.
auto spherical_bessel_j(int n, bool times_pi, const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::SphericalBesselJ>(x, where,
                                            {static_cast<double>(n), times_pi ? 1.0 : 0.0});
}
/// sin(πx)/(πx), and 1 at 0.
auto sinc(const IsVar auto& x, Where where = Where::current()) {
  return spherical_bessel_j(0, true, x, where);
}

}  // namespace palimpsest
