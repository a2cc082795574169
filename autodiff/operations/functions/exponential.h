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

struct Exp2 {
  static constexpr Text text{"exp2", "y = 2ˣ, dy/dx = y·log 2", "power of 2"};
  static constexpr bool magnifies = true;
  static auto value(const auto& x) { return exp2(x); }
  static auto from_y(const auto& dy, const auto& y) { return dy * (y * std::numbers::ln2); }
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

struct Log2 {
  static constexpr Text text{"log2", "y = log₂(x), dy/dx = 1/(x·log 2)", "logarithm to base 2"};
  static constexpr bool magnifies = true;
  static auto value(const auto& x) { return log2(x); }
  static auto from_x(const auto& dy, const auto& x) { return dy / (x * std::numbers::ln2); }
};

struct Log10 {
  static constexpr Text text{"log10", "y = log₁₀(x), dy/dx = 1/(x·log 10)", "logarithm to base 10"};
  static constexpr bool magnifies = true;
  static auto value(const auto& x) { return log10(x); }
  static auto from_x(const auto& dy, const auto& x) { return dy / (x * std::numbers::ln10); }
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

struct Erfc {
  static constexpr Text text{"erfc", "y = 1 - erf(x), dy/dx = -2/√π·exp(-x²)",
                             "complementary error function", 20};
  static auto value(const auto& x) { return erfc(x); }
  static auto from_x(const auto& dy, const auto& x) {
    return times_gaussian(dy * (-2 * std::numbers::inv_sqrtpi), x, -1);
  }
};

struct Logit {
  static constexpr Text text{"logit", "y = log(x/(1 - x)), dy/dx = 1/(x·(1 - x))",
                             "inverse of the logistic function", 30};
  static constexpr bool magnifies = true;
  // Near ½, x/(1 − x) is near 1, where the logarithm magnifies its error. There, the distance from
  // ½ and the smaller one of x and 1 − x are exact.
  static auto value(const auto& x) {
    const auto rest = 1 - x;
    const auto twice = 2 * x - 1;
    const auto above = log1p(choose(twice, twice / rest, -twice / x));
    return choose(x - 0.25, choose(twice, above, -above), logarithm(x / rest));
  }
  static auto from_x(const auto& dy, const auto& x) { return dy / (x * (1 - x)); }
};

using Exponential = List<Exp, Exp2, Expm1, Log, Log2, Log10, Log1p, Erf, Erfc, Logit>;
template <IsIn<Exponential> F>
inline constexpr Place place_of<F>{Family::exponential, position<F, Exponential>};

}  // namespace palimpsest::functions

namespace palimpsest PALIMPSEST_EXPORT {

// Elementwise. Throws `DTypeError` for dtypes that are not floating.

/// eˣ.
auto exp(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Exp>(x, where);
}
/// 2ˣ; exact for whole x.
auto exp2(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Exp2>(x, where);
}
/// eˣ − 1, accurate near 0.
auto expm1(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Expm1>(x, where);
}
/// The natural logarithm; −∞ at 0, NaN below.
auto log(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Log>(x, where);
}
/// The logarithm to base 2, exact for powers of 2; −∞ at 0, NaN below.
auto log2(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Log2>(x, where);
}
/// The logarithm to base 10; −∞ at 0, NaN below.
auto log10(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Log10>(x, where);
}
/// log(1 + x), accurate near 0.
auto log1p(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Log1p>(x, where);
}
/// The error function, 2/√π·∫₀ˣ exp(−t²) dt.
auto erf(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Erf>(x, where);
}
/// 1 − erf(x), accurate also where it is small.
auto erfc(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Erfc>(x, where);
}
/// log(x/(1 − x)), the inverse of `sigmoid`; ∓∞ at 0 and 1, NaN outside.
auto logit(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Logit>(x, where);
}

}  // namespace palimpsest
