#pragma once

#include "autodiff/export.h"
#include "autodiff/operations/functions/function.h"

namespace palimpsest::functions {

struct Negate {
  static constexpr Text text{"negate", "y = -x, dy/dx = -1", "negation", 1};
  static constexpr ArithmeticStep arithmetic = ArithmeticStep::multiply;
  static constexpr double number = -1;
  // A product, as in fused kernels, because it keeps the sign of NaN.
  static auto value(const auto& x) { return x * -1; }
  static auto adjoint(const auto& dy, const auto&, const auto&) { return dy * -1; }
};

struct Shift {
  static constexpr Text text{"shift", "y = x + a, dy/dx = 1", "sum of the value and a number", 1};
  static constexpr ArithmeticStep arithmetic = ArithmeticStep::add;
  static constexpr double identity = -0.0;
  static auto value(const auto& x, const double* a) { return x + *a; }
  static auto adjoint(const auto& dy, const auto&, const auto&, const double*) { return dy; }
};

struct SubtractFrom {
  static constexpr Text text{"subtract_from", "y = a - x, dy/dx = -1", "a number minus the value",
                             1};
  static constexpr ArithmeticStep arithmetic = ArithmeticStep::subtract_from;
  static auto value(const auto& x, const double* a) { return *a - x; }
  static auto adjoint(const auto& dy, const auto&, const auto&, const double*) { return -dy; }
};

struct Scale {
  static constexpr Text text{"scale", "y = a·x, dy/dx = a", "product of the value and a number", 1};
  static constexpr ArithmeticStep arithmetic = ArithmeticStep::multiply;
  static constexpr double identity = 1;
  static auto value(const auto& x, const double* a) { return x * *a; }
  static auto adjoint(const auto& dy, const auto&, const auto&, const double* a) { return dy * *a; }
};

struct DivideBy {
  static constexpr Text text{"divide_by", "y = x/a, dy/dx = 1/a",
                             "quotient of the value and a number", 1};
  static constexpr double identity = 1;
  static auto value(const auto& x, const double* a) { return x / *a; }
  static auto adjoint(const auto& dy, const auto&, const auto&, const double* a) { return dy / *a; }
};

struct Reciprocal {
  static constexpr Text text{"reciprocal", "y = 1/x, dy/dx = -y²", "one over the value", 1};
  static constexpr bool magnifies = true;
  static auto value(const auto& x) { return 1 / x; }
  static auto from_y(const auto& dy, const auto& y) { return -(dy * (y * y)); }
};

struct Square {
  static constexpr Text text{"square", "y = x², dy/dx = 2x", "product of the value with itself", 1};
  static constexpr bool magnifies = true;
  static auto value(const auto& x) { return x * x; }
  static auto from_x(const auto& dy, const auto& x) { return dy * (2 * x); }
};

struct Sqrt {
  static constexpr Text text{"sqrt", "y = √x, dy/dx = 1/2y, infinite at 0", "square root", 4};
  static auto value(const auto& x) { return root(x); }
  static auto from_y(const auto& dy, const auto& y) { return dy / (2 * y); }
};

struct Rsqrt {
  static constexpr Text text{"rsqrt", "y = 1/√x, dy/dx = -y³/2", "one over the square root", 5};
  static constexpr bool magnifies = true;
  static auto value(const auto& x) { return 1 / root(x); }
  static auto from_y(const auto& dy, const auto& y) { return dy * (y * y * y) * -0.5; }
};

struct Power {
  static constexpr Text text{"power", "y = xᵃ, dy/dx = a·xᵃ⁻¹, 0 where a = 0", "power of a number",
                             20};
  static constexpr bool magnifies = true;
  static auto value(const auto& x, const double* a) { return pow(x, *a); }
  static auto from_x(const auto& dy, const auto& x, const double* a) {
    const double exponent = *a == 0 ? 0 : *a - 1;  // 0·x⁻¹ is NaN at 0
    return dy * (pow(x, exponent) * *a);
  }
};

struct Abs {
  static constexpr Text text{"abs", "y = |x|, dy/dx = sign(x), 0 at 0", "absolute value", 1};
  static constexpr bool piecewise_linear = true;
  static auto value(const auto& x) { return abs(x); }
  static auto from_x(const auto& dy, const auto& x) { return choose(x, dy, choose(-x, -dy, 0)); }
};

struct Sign {
  static constexpr Text text{"sign", "y = 1 if x > 0, -1 if x < 0, else 0; dy/dx = 0", "sign", 1};
  static auto value(const auto& x) { return choose(x, 1, choose(-x, -1, x)); }
};

struct Floor {
  static constexpr Text text{"floor", "y = ⌊x⌋, dy/dx = 0", "largest integer not above the value",
                             1};
  static auto value(const auto& x) { return floor(x); }
};

struct Ceil {
  static constexpr Text text{"ceil", "y = ⌈x⌉, dy/dx = 0", "smallest integer not below the value",
                             1};
  static auto value(const auto& x) { return ceil(x); }
};

struct Round {
  static constexpr Text text{"round", "y = nearest integer to x, ties to even; dy/dx = 0",
                             "integer nearest to the value", 1};
  static auto value(const auto& x) { return rint(x); }
};

struct Trunc {
  static constexpr Text text{"trunc", "y = x rounded towards 0, dy/dx = 0",
                             "whole part of the value", 1};
  static auto value(const auto& x) { return trunc(x); }
};

struct Clamp {
  static constexpr Text text{"clamp",
                             "y = min(max(x, low), high), dy/dx = 1 if low ≤ x ≤ high else 0",
                             "the value limited to an interval", 1};
  static constexpr bool piecewise_linear = true;
  static const char* problem(const double* bounds) {
    return bounds[0] <= bounds[1] ? nullptr
                                  : "the lower bound {} is above the upper bound {}; swap them";
  }
  static auto value(const auto& x, const double* bounds) {
    return choose(bounds[0] - x, bounds[0], choose(x - bounds[1], bounds[1], x));
  }
  static auto from_x(const auto& dy, const auto& x, const double* bounds) {
    return choose(bounds[0] - x, 0, choose(x - bounds[1], 0, dy));
  }
};

using Arithmetic = List<Negate, Shift, SubtractFrom, Scale, DivideBy, Reciprocal, Square, Sqrt,
                        Rsqrt, Power, Abs, Sign, Floor, Ceil, Round, Trunc, Clamp>;
template <IsIn<Arithmetic> F>
inline constexpr Place place_of<F>{Family::arithmetic, position<F, Arithmetic>};

}  // namespace palimpsest::functions

namespace palimpsest PALIMPSEST_EXPORT {

// Elementwise. Throws `DTypeError` for dtypes that are not floating, unless stated otherwise.

/// −x. Also for integers, which wrap around.
auto negate(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Negate>(x, where);
}
/// 1/x.
auto reciprocal(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Reciprocal>(x, where);
}
/// x².
auto square(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Square>(x, where);
}
/// √x. The derivative is infinite at 0; add a small number under the root where 0 can occur.
auto sqrt(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Sqrt>(x, where);
}
/// 1/√x.
auto rsqrt(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Rsqrt>(x, where);
}
/// x to a fixed power. A negative x gives NaN unless `exponent` is whole.
auto pow(const IsVar auto& x, double exponent, Where where = Where::current()) {
  return exponent == 2 ? unary<functions::Square>(x, where)
                       : unary<functions::Power>(x, where, {exponent});
}
/// |x|. The derivative at 0 is 0. Also for integers; the lowest integer stays, as it has no
/// opposite.
auto abs(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Abs>(x, where);
}
/// 1, −1, or 0 at 0; NaN stays NaN. No derivative flows.
auto sign(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Sign>(x, where);
}
/// The largest whole number not above x. No derivative flows.
auto floor(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Floor>(x, where);
}
/// The smallest whole number not below x. No derivative flows.
auto ceil(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Ceil>(x, where);
}
/// Rounds to the nearest whole number, ties to even. No derivative flows.
auto round(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Round>(x, where);
}
/// Rounds towards 0. No derivative flows.
auto trunc(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Trunc>(x, where);
}
/// x clamped to [low, high]; either may be infinite. The derivative is 1 inside and at the bounds.
/// Throws `ArgumentError` unless low ≤ high.
auto clamp(const IsVar auto& x, double low, double high, Where where = Where::current()) {
  return unary<functions::Clamp>(x, where, {low, high});
}

}  // namespace palimpsest
