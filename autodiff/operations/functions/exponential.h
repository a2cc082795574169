#pragma once

#include <numbers>

#include "autodiff/export.h"
#include "autodiff/operations/functions/function.h"

namespace palimpsest::functions {

struct Exp {
  static constexpr Text text{"exp", "y = exp(x), dy/dx = y", "exponential"};
  static constexpr bool magnifies = true;
  static auto value(const auto& x) { return exponential(x); }
  static auto adjoint(const auto& dy, const auto&, const auto& y) { return dy * y; }
};

struct Expm1 {
  static constexpr Text text{"expm1", "y = exp(x) - 1, dy/dx = y + 1",
                             "exponential minus 1, accurate near 0", 20};
  static constexpr bool magnifies = true;
  static auto value(const auto& x) { return expm1(x); }
  static auto from_y(const auto& dy, const auto& y) { return dy * (y + 1); }
};

struct Log {
  static constexpr Text text{"log", "y = log(x), dy/dx = 1/x", "natural logarithm"};
  static constexpr bool magnifies = true;
  static auto value(const auto& x) { return logarithm(x); }
  static auto adjoint(const auto& dy, const auto& x, const auto&) { return dy / x; }
};

struct Log1p {
  static constexpr Text text{"log1p", "y = log(1 + x), dy/dx = 1/(1 + x)",
                             "logarithm of 1 + x, accurate near 0", 20};
  static constexpr bool magnifies = true;
  static auto value(const auto& x) { return log1p(x); }
  static auto from_x(const auto& dy, const auto& x) { return dy / (x + 1); }
};

struct Erf {
  static constexpr Text text{"erf", "y = 2/√π·∫₀ˣ exp(-t²) dt, dy/dx = 2/√π·exp(-x²)",
                             "error function"};
  static auto value(const auto& x) { return erf(x); }
  static auto from_x(const auto& dy, const auto& x) {
    return times_gaussian(dy * (2 * std::numbers::inv_sqrtpi), x, -1);
  }
};

using Exponential = List<Exp, Expm1, Log, Log1p, Erf>;
template <IsIn<Exponential> F>
inline constexpr Place place_of<F>{Family::exponential, position<F, Exponential>};

}  // namespace palimpsest::functions

namespace palimpsest PALIMPSEST_EXPORT {

// Elementwise. Throws `DTypeError` for dtypes that are not floating.

/// eˣ.
auto exp(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Exp>(x, where);
}
/// eˣ − 1, accurate near 0.
auto expm1(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Expm1>(x, where);
}
/// The natural logarithm; −∞ at 0, NaN below.
auto log(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Log>(x, where);
}
/// log(1 + x), accurate near 0.
auto log1p(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Log1p>(x, where);
}
/// The error function, 2/√π·∫₀ˣ exp(−t²) dt.
auto erf(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Erf>(x, where);
}

}  // namespace palimpsest
