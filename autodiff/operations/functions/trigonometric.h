#pragma once

#include "autodiff/export.h"
#include "autodiff/operations/functions/function.h"

namespace palimpsest::functions {

/// 1 - x² of a pack or a Var, accurate also near ±1.
auto one_less_square(const auto& x) { return (1 - x) * (1 + x); }
auto one_less_square(const IsVar auto& x) {
  // The derivative of the product, (1 - x) - (1 + x), would lose the digits of x near 0.
  return with_slope((1 - x) * (1 + x), -(x * x));
}

/// x² of a pack. For a Var, unary.cpp defines it without a derivative where it leaves the range.
auto bounded_square(const auto& x) { return x * x; }

struct Sin {
  static constexpr Text text{"sin", "y = sin(x), dy/dx = cos(x)", "sine"};
  static auto value(const auto& x) { return sin(x); }
  static auto from_x(const auto& dy, const auto& x) { return dy * cos(x); }
};

struct Cos {
  static constexpr Text text{"cos", "y = cos(x), dy/dx = -sin(x)", "cosine"};
  static auto value(const auto& x) { return cos(x); }
  static auto from_x(const auto& dy, const auto& x) { return -(dy * sin(x)); }
};

struct Tan {
  static constexpr Text text{"tan", "y = tan(x), dy/dx = 1 + y²", "tangent", 20};
  static constexpr bool magnifies = true;
  static auto value(const auto& x) { return tan(x); }
  static auto from_y(const auto& dy, const auto& y) { return dy * (y * y + 1); }
};

struct Asin {
  static constexpr Text text{"asin", "y = arcsin(x), dy/dx = 1/√(1 - x²)", "inverse sine", 20};
  static auto value(const auto& x) { return asin(x); }
  static auto from_x(const auto& dy, const auto& x) { return dy / root(one_less_square(x)); }
};

struct Acos {
  static constexpr Text text{"acos", "y = arccos(x), dy/dx = -1/√(1 - x²)", "inverse cosine", 20};
  static auto value(const auto& x) { return acos(x); }
  static auto from_x(const auto& dy, const auto& x) { return -dy / root(one_less_square(x)); }
};

struct Atan {
  static constexpr Text text{"atan", "y = arctan(x), dy/dx = 1/(1 + x²)", "inverse tangent", 20};
  static auto value(const auto& x) { return atan(x); }
  static auto from_x(const auto& dy, const auto& x) { return dy / (bounded_square(x) + 1); }
};

struct Sinh {
  static constexpr Text text{"sinh", "y = sinh(x), dy/dx = cosh(x)", "hyperbolic sine", 20};
  static constexpr bool magnifies = true;
  static auto value(const auto& x) { return sinh(x); }
  static auto from_x(const auto& dy, const auto& x) { return dy * cosh(x); }
};

struct Cosh {
  static constexpr Text text{"cosh", "y = cosh(x), dy/dx = sinh(x)", "hyperbolic cosine", 20};
  static constexpr bool magnifies = true;
  static auto value(const auto& x) { return cosh(x); }
  static auto from_x(const auto& dy, const auto& x) { return dy * sinh(x); }
};

struct Tanh {
  static constexpr Text text{"tanh", "y = tanh(x), dy/dx = 1 - y²", "hyperbolic tangent"};
  static auto value(const auto& x) { return tanh(x); }
  static auto from_y(const auto& dy, const auto& y) { return dy * (1 - y * y); }
};

struct Asinh {
  static constexpr Text text{"asinh", "y = arsinh(x), dy/dx = 1/√(x² + 1)",
                             "inverse hyperbolic sine", 20};
  static auto value(const auto& x) { return asinh(x); }
  static auto from_x(const auto& dy, const auto& x) { return dy / root(bounded_square(x) + 1); }
};

struct Acosh {
  static constexpr Text text{"acosh", "y = arcosh(x), dy/dx = 1/√(x² - 1)",
                             "inverse hyperbolic cosine", 20};
  static auto value(const auto& x) { return acosh(x); }
  static auto from_x(const auto& dy, const auto& x) {
    return dy / root(x - 1) / root(x + 1);  // x² would overflow
  }
};

struct Atanh {
  static constexpr Text text{"atanh", "y = artanh(x), dy/dx = 1/(1 - x²)",
                             "inverse hyperbolic tangent", 20};
  static auto value(const auto& x) { return atanh(x); }
  static auto from_x(const auto& dy, const auto& x) { return dy / one_less_square(x); }
};

using Trigonometric = List<Sin, Cos, Tan, Asin, Acos, Atan, Sinh, Cosh, Tanh, Asinh, Acosh, Atanh>;
template <IsIn<Trigonometric> F>
inline constexpr Place place_of<F>{Family::trigonometric, position<F, Trigonometric>};

}  // namespace palimpsest::functions

namespace palimpsest PALIMPSEST_EXPORT {

// Elementwise. Angles are in radians. Throws `DTypeError` for dtypes that are not floating.

/// The sine.
auto sin(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Sin>(x, where);
}
/// The cosine.
auto cos(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Cos>(x, where);
}
/// The tangent.
auto tan(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Tan>(x, where);
}
/// The angle in [−π/2, π/2] whose sine is x; NaN outside [−1, 1].
auto asin(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Asin>(x, where);
}
/// The angle in [0, π] whose cosine is x; NaN outside [−1, 1].
auto acos(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Acos>(x, where);
}
/// The angle in [−π/2, π/2] whose tangent is x.
auto atan(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Atan>(x, where);
}
/// The hyperbolic sine.
auto sinh(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Sinh>(x, where);
}
/// The hyperbolic cosine.
auto cosh(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Cosh>(x, where);
}
/// The hyperbolic tangent.
auto tanh(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Tanh>(x, where);
}
/// The inverse of `sinh`.
auto asinh(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Asinh>(x, where);
}
/// The inverse of `cosh`, not negative; NaN below 1.
auto acosh(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Acosh>(x, where);
}
/// The inverse of `tanh`; ±∞ at ±1, NaN beyond.
auto atanh(const IsVar auto& x, Where where = Where::current()) {
  return unary<functions::Atanh>(x, where);
}

}  // namespace palimpsest
