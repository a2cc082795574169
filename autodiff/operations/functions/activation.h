#pragma once

#include <numbers>

#include "autodiff/export.h"
#include "autodiff/operations/functions/function.h"

namespace palimpsest::functions {

// Helpers of the formulas. On packs they neither overflow nor suffer cancellation, and intermediate
// results do not lose digits by becoming subnormal.

/// 1/(1 + exp(-x)) of a pack or a Var; compensates most of the rounding error of the sum.
auto logistic_of(const auto& x) {
  const auto e = decay(x);
  const auto sum = 1 + e;
  const auto quotient = choose(-x, e, 1) / sum;
  return quotient - quotient * (e - (sum - 1));
}

/// The logistic function s and its derivative s·(1 - s). For `Var`s both are computed from the
/// smaller of s and 1 - s, since the larger one has lost the digits of the smaller.
template <class V>
struct Logistic {
  V value, slope;
};
template <class V>
Logistic<V> logistic_with_slope(const V& x) {
  const V s = logistic_of(x);
  return {s, s * (1 - s)};
}
template <IsVar V>
Logistic<V> logistic_with_slope(const V& x) {
  const V smaller = sigmoid(choose(x, -x, x));
  return {choose(x, 1 - smaller, smaller), smaller * (1 - smaller)};
}

/// x/(1 + exp(-z)) of packs.
auto gated(const auto& x, const auto& z) {
  const auto e = decay_factors(z);
  const auto part = x / (1 + e.first * e.second);
  return choose(z, part, e.first * part * e.second);
}

/// exp(x) for x ≤ 0. On packs it is any number above.
auto exponential_below(const auto& x) { return exponential(choose(x, 0, x)); }

/// max(x, least); NaN stays.
auto at_least(double least, const auto& x) { return choose(least - x, least, x); }

// Formulas of activations and their derivatives. kernels/pack_tabulated.h has faster ones for f32
// packs, which take precedence.
auto softplus_of(const auto& x) {
  return choose(x, x, 0) + log1p_of_fraction(decay(x));  // no overflow or cancellation
}

/// x·Φ(x) of a pack.
auto gelu_of(const auto& x) {
  const auto g = gaussian(x, -0.5);
  const auto below = g.first * (g.distance * mills_ratio(g.distance)) * g.second;  // |x|·Φ(-|x|)
  return choose(-x, -below, x - below);
}

/// Φ(x) + x·φ(x) of a pack or a Var.
auto gelu_slope(const auto& x) {
  const auto g = gaussian(x, -0.5);
  const auto density = g.distance * (std::numbers::inv_sqrtpi * std::numbers::sqrt2 / 2);
  const auto below = g.first * (mills_ratio(g.distance) - density) * g.second;
  return choose(-x, below, 1 - below);
}
auto gelu_slope(const IsVar auto& x) {
  const auto bounded = clamp(x, -40, 40);  // avoids ∞·0, which is NaN
  const auto density =
      exponential(bounded * bounded * -0.5) * (std::numbers::inv_sqrtpi * std::numbers::sqrt2 / 2);
  return (erf(bounded * (std::numbers::sqrt2 / 2)) + 1) * 0.5 + bounded * density;
}

constexpr double gelu_tanh_factor = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
/// z, if `gelu_tanh` is x/(1 + exp(-z)).
auto gelu_tanh_argument(const auto& x) {
  return x * (x * x * (2 * 0.044715 * gelu_tanh_factor) + 2 * gelu_tanh_factor);
}
auto gelu_tanh_of(const auto& x) {
  const auto bounded = at_least(-40, x);
  return gated(bounded, gelu_tanh_argument(bounded));
}
auto gelu_tanh_slope(const auto& x) {
  const auto bounded = choose(x - 40, 40, at_least(-40, x));
  const auto s = logistic_with_slope(gelu_tanh_argument(bounded));
  const auto inner = bounded * bounded * (6 * 0.044715 * gelu_tanh_factor) + 2 * gelu_tanh_factor;
  return s.value + bounded * inner * s.slope;
}

auto silu_of(const auto& x) {
  const auto bounded = at_least(-800, x);
  return gated(bounded, bounded);
}
auto silu_slope(const auto& x) {
  const auto bounded = choose(x - 800, 800, at_least(-800, x));  // avoids ∞·0, which is NaN
  const auto s = logistic_with_slope(bounded);
  return s.value + bounded * s.slope;
}

auto mish_of(const auto& x) {
  const auto bounded = choose(x - 20, 20, at_least(-800, x));
  const auto factors = exponential_factors(bounded);
  const auto e = factors.first * factors.second;
  const auto part = bounded * (e + 2) / (e * (e + 2) + 2);
  return choose(x - 20, x, factors.first * part * factors.second);
}
/// With e = exp(x) and m = e·(e + 2) + 2, tanh(softplus(x)) is e·(e + 2)/m, and the other term of
/// the derivative is 4·x·e·(e + 1)/m².
auto mish_slope(const auto& x) {
  const auto bounded = choose(x - 40, 40, at_least(-800, x));
  const auto e = exponential(bounded);
  const auto m = e * (e + 2) + 2;
  return e * (e + 2) / m + bounded * 4 * (e * (e + 1) / m) / m;
}
/// The same formula in d = exp(-|x|): its intermediate derivatives do not overflow.
auto mish_slope(const IsVar auto& x) {
  const auto bounded = choose(x - 800, 800, at_least(-800, x));
  const auto d = exponential(choose(bounded, -bounded, bounded));
  const auto m = choose(x, d * (d * 2 + 2) + 1, d * (d + 2) + 2);
  const auto t = with_slope(choose(x, d * 2 + 1, d * (d + 2)) / m, choose(x, d * d * -2, -2) / m);
  return t + bounded * 4 * (choose(x, d * d, d) * (d + 1) / m) / m;
}

struct Relu {
  static constexpr Text text{"relu", "y = max(x, 0), dy/dx = 1 if x > 0 else 0",
                             "rectified linear unit", 1};
  static constexpr bool piecewise_linear = true;
  static auto value(const auto& x) { return choose(-x, 0, x); }
  static auto from_y(const auto& dy, const auto& y) { return choose(y, dy, 0); }
};

struct LeakyRelu {
  static constexpr Text text{"leaky_relu", "y = x if x > 0 else a·x, dy/dx = 1 if x > 0 else a",
                             "rectified linear unit with a slope below 0", 1};
  static constexpr bool piecewise_linear = true;
  static const char* problem(const double* slope) {
    return *slope >= 0 ? nullptr
                       : "the slope is {}; give 0 or more, so that the value shows the sign of x";
  }
  static auto value(const auto& x, const double* slope) { return choose(x, x, x * *slope); }
  static auto from_y(const auto& dy, const auto& y, const double* slope) {
    return choose(y, dy, dy * *slope);
  }
};

struct Elu {
  static constexpr Text text{"elu",
                             "y = x if x > 0 else a·(exp(x) - 1), dy/dx = 1 if x > 0 else a·exp(x)",
                             "exponential linear unit", 20};
  static const char* problem(const double* a) {
    return *a >= 0 ? nullptr
                   : "the factor is {}; give 0 or more, so that the value shows the sign of x";
  }
  static auto value(const auto& x, const double* a) { return choose(x, x, expm1(x) * *a); }
  static auto from_x(const auto& dy, const auto& x, const double* a) {
    return choose(x, dy, dy * (exponential_below(x) * *a));
  }
};

struct Sigmoid {
  static constexpr Text text{"sigmoid", "y = 1/(1 + exp(-x)), dy/dx = y·(1 - y)",
                             "logistic function"};
  static auto value(const auto& x) { return logistic_of(x); }
  static auto from_y(const auto& dy, const auto& y) { return dy * (y * (1 - y)); }
};

struct Softplus {
  static constexpr Text text{"softplus", "y = log(1 + exp(x)), dy/dx = 1 - exp(-y)",
                             "smooth rectifier", 30};
  static auto value(const auto& x) { return softplus_of(x); }
  static auto from_y(const auto& dy, const auto& y) { return -(dy * expm1(-y)); }
};

struct Gelu {
  static constexpr Text text{"gelu", "y = x·Φ(x), dy/dx = Φ(x) + x·φ(x), Φ the normal distribution",
                             "Gaussian error linear unit", 20};
  static auto value(const auto& x) { return gelu_of(x); }
  static auto from_x(const auto& dy, const auto& x) { return dy * gelu_slope(x); }
};

struct GeluTanh {
  static constexpr Text text{"gelu_tanh",
                             "y = x/2·(1 + t), t = tanh(√(2/π)·(x + 0.044715·x³)), "
                             "dy/dx = (1 + t)/2 + x/2·(1 - t²)·√(2/π)·(1 + 0.134145·x²)",
                             "Gaussian error linear unit, tanh approximation", 20};
  static auto value(const auto& x) { return gelu_tanh_of(x); }
  static auto from_x(const auto& dy, const auto& x) { return dy * gelu_tanh_slope(x); }
};

struct Silu {
  static constexpr Text text{"silu", "y = x·s, s = sigmoid(x), dy/dx = s·(1 + x·(1 - s))",
                             "sigmoid linear unit"};
  static auto value(const auto& x) { return silu_of(x); }
  static auto from_x(const auto& dy, const auto& x) { return dy * silu_slope(x); }
};

struct Mish {
  static constexpr Text text{"mish",
                             "y = x·t, t = tanh(softplus(x)), dy/dx = t + x·(1 - t²)·sigmoid(x)",
                             "self-regularised smooth rectifier", 20};
  static auto value(const auto& x) { return mish_of(x); }
  static auto from_x(const auto& dy, const auto& x) { return dy * mish_slope(x); }
};

struct Hardtanh {
  static constexpr Text text{"hardtanh",
                             "y = min(max(x, low), high), dy/dx = 1 if low < x < high else 0",
                             "the value limited to an interval, constant at its bounds", 1};
  static constexpr bool piecewise_linear = true;
  static const char* problem(const double* bounds) {
    return bounds[0] <= bounds[1] ? nullptr
                                  : "the lower bound {} is above the upper bound {}; swap them";
  }
  static auto value(const auto& x, const double* bounds) {
    return choose(bounds[0] - x, bounds[0], choose(x - bounds[1], bounds[1], x));
  }
  static auto from_x(const auto& dy, const auto& x, const double* bounds) {
    return choose(x - bounds[0], choose(bounds[1] - x, dy, 0), 0);
  }
};

struct Softsign {
  static constexpr Text text{"softsign", "y = x/(1 + |x|), dy/dx = 1/(1 + |x|)²",
                             "sign with a smooth step", 2};
  static auto value(const auto& x) { return x / (1 + abs(x)); }
  static auto from_x(const auto& dy, const auto& x) {
    const auto distance = 1 + abs(x);
    return dy / distance / distance;  // the square would overflow
  }
};

struct Tanhshrink {
  static constexpr Text text{"tanhshrink", "y = x - tanh(x), dy/dx = tanh(x)²",
                             "the value minus its hyperbolic tangent"};
  static auto value(const auto& x) { return x - tanh(x); }
  static auto from_x(const auto& dy, const auto& x) {
    const auto t = tanh(x);
    return dy * (t * t);
  }
};

using Activation = List<Relu, LeakyRelu, Elu, Sigmoid, Softplus, Gelu, GeluTanh, Silu, Mish,
                        Hardtanh, Softsign, Tanhshrink>;
template <IsIn<Activation> F>
inline constexpr Place place_of<F>{Family::activation, position<F, Activation>};

}  // namespace palimpsest::functions

namespace palimpsest PALIMPSEST_EXPORT {

// Elementwise. Throws `DTypeError` for dtypes that are not floating.

/// The rectifier max(x, 0). The derivative at 0 is 0.
auto relu(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Relu>(x, where);
}
/// x if x > 0, else `slope`·x; the derivative at 0 is `slope`. Throws `ArgumentError` for a
/// negative slope.
auto leaky_relu(const IsVar auto& x, double slope = 0.01, Where where = Where::current()) {
  return unary<functions::LeakyRelu>(x, where, {slope});
}
/// x if x > 0, else `a`·(exp(x) − 1). Throws `ArgumentError` for a negative `a`.
auto elu(const IsVar auto& x, double a = 1, Where where = Where::current()) {
  return unary<functions::Elu>(x, where, {a});
}
/// The logistic function 1/(1 + exp(−x)).
auto sigmoid(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Sigmoid>(x, where);
}
/// log(1 + exp(x)), without overflow.
auto softplus(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Softplus>(x, where);
}
/// x·Φ(x), with the exact distribution function Φ of the standard normal distribution.
auto gelu(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Gelu>(x, where);
}
/// The tanh approximation of `gelu`.
auto gelu_tanh(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::GeluTanh>(x, where);
}
/// x·sigmoid(x).
auto silu(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Silu>(x, where);
}
/// x·tanh(softplus(x)).
auto mish(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Mish>(x, where);
}
/// x limited to [low, high], like `clamp`, but with derivative 0 at the bounds and at NaN. Throws
/// `ArgumentError` unless low ≤ high.
auto hardtanh(const IsVar auto& x, double low = -1, double high = 1,
              Where where = Where::current()) {
  return unary<functions::Hardtanh>(x, where, {low, high});
}
/// x/(1 + |x|).
auto softsign(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Softsign>(x, where);
}
/// x − tanh(x).
auto tanhshrink(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Tanhshrink>(x, where);
}

}  // namespace palimpsest
