#pragma once

#include <array>
#include <limits>
#include <optional>

#include "autodiff/export.h"
#include "autodiff/operations/functions/function.h"
#include "autodiff/operations/functions/loss.h"

// Functions of two variables, defined as functions/function.h describes. `da` and `db` record the
// adjoint of one operand before it is summed to that operand's shape; without one no derivative
// flows to that operand. `floating` marks functions without integer support. `neutral` holds each
// operand's neutral element: it leaves the other operand unchanged, bit for bit.
namespace palimpsest::functions {

using Neutral = std::array<std::optional<double>, 2>;

struct Add {
  static constexpr Text text{"add", "y = a + b", "sum", 1};
  static constexpr ArithmeticStep arithmetic = ArithmeticStep::add;
  static constexpr Neutral neutral{-0.0, -0.0};
  static auto value(const auto& a, const auto& b) { return a + b; }
  template <class V>
  static V da(const V& dy, const V&, const V&, const V&) {
    return dy;
  }
  template <class V>
  static V db(const V& dy, const V&, const V&, const V&) {
    return dy;
  }
};

struct Subtract {
  static constexpr Text text{"subtract", "y = a - b", "difference", 1};
  static constexpr ArithmeticStep arithmetic = ArithmeticStep::subtract;
  static constexpr Neutral neutral{std::nullopt, 0};
  static auto value(const auto& a, const auto& b) { return a - b; }
  template <class V>
  static V da(const V& dy, const V&, const V&, const V&) {
    return dy;
  }
  template <class V>
  static V db(const V& dy, const V&, const V&, const V&) {
    return -dy;
  }
};

struct Multiply {
  static constexpr Text text{"multiply", "y = a·b, ∂y/∂a = b, ∂y/∂b = a", "product", 1};
  static constexpr ArithmeticStep arithmetic = ArithmeticStep::multiply;
  static constexpr Neutral neutral{1, 1};
  static auto value(const auto& a, const auto& b) { return a * b; }
  template <class V>
  static V da(const V& dy, const V&, const V& b, const V&) {
    return dy * b;
  }
  template <class V>
  static V db(const V& dy, const V& a, const V&, const V&) {
    return dy * a;
  }
};

struct Divide {
  static constexpr Text text{"divide", "y = a/b, ∂y/∂a = 1/b, ∂y/∂b = -y/b",
                             "quotient; of integers truncated towards 0, or 0 where b = 0", 1};
  static constexpr Neutral neutral{std::nullopt, 1};
  static auto value(const auto& a, const auto& b) { return quotient(a, b); }
  template <class V>
  static V da(const V& dy, const V&, const V& b, const V&) {
    return dy / b;
  }
  template <class V>
  static V db(const V& dy, const V&, const V& b, const V& y) {
    return -(dy * (y / b));
  }
};

struct Minimum {
  static constexpr Text text{"minimum", "y = min(a, b); equal operands halve the adjoint",
                             "the smaller operand; NaN if either operand is NaN", 1};
  static auto value(const auto& a, const auto& b) { return smaller(a, b); }
  template <class V>
  static V da(const V& dy, const V& a, const V& b, const V&) {
    return dy * share(b, a);
  }
  template <class V>
  static V db(const V& dy, const V& a, const V& b, const V&) {
    return dy * share(a, b);
  }
};

struct Maximum {
  static constexpr Text text{"maximum", "y = max(a, b); equal operands halve the adjoint",
                             "the larger operand; NaN if either operand is NaN", 1};
  static auto value(const auto& a, const auto& b) { return larger(a, b); }
  template <class V>
  static V da(const V& dy, const V& a, const V& b, const V&) {
    return dy * share(a, b);
  }
  template <class V>
  static V db(const V& dy, const V& a, const V& b, const V&) {
    return dy * share(b, a);
  }
};

/// The share of a maximum's adjoint that the operand a gets.
struct Share {
  static constexpr Text text{"share", "y = 1 if a > b, 0 if a < b, else 1/2; no derivative",
                             "part of the adjoint of a maximum", 2};
  static constexpr bool floating = true;
  static auto value(const auto& a, const auto& b) {
    return choose(a - b, 1, choose(b - a, 0, 0.5));
  }
};

struct Pow {
  static constexpr Text text{
      "pow", "y = aᵇ, ∂y/∂a = b·aᵇ⁻¹, 0 at a = b = 0; ∂y/∂b = y·log a, 0 where a = 0 ≤ b", "power",
      30};
  static constexpr bool magnifies = true;
  static constexpr bool floating = true;
  static auto value(const auto& a, const auto& b) { return pow(a, b); }
  template <class V>
  static V da(const V& dy, const V& a, const V& b, const V&) {
    const V empty = logical_and(equal(a, 0), equal(b, 0));  // avoids 0·0⁻¹, which is NaN
    return dy * (b * pow(where(empty, 1, a), b - 1));
  }
  template <class V>
  static V db(const V& dy, const V& a, const V& b, const V& y) {
    const V empty = logical_and(equal(a, 0), greater_equal(b, 0));  // avoids 0·log 0, which is NaN
    return dy * (y * log(where(empty, 1, a)));
  }
};

struct Atan2 {
  static constexpr Text text{"atan2",
                             "y = angle of (b, a), ∂y/∂a = b/(a² + b²), ∂y/∂b = -a/(a² + b²)",
                             "angle of the point with ordinate a and abscissa b", 30};
  static constexpr bool floating = true;
  static auto value(const auto& a, const auto& b) { return atan2(a, b); }
  template <class V>
  static V da(const V& dy, const V& a, const V& b, const V&) {
    return dy * (b / (a * a + b * b));
  }
  template <class V>
  static V db(const V& dy, const V& a, const V& b, const V&) {
    return -(dy * (a / (a * a + b * b)));
  }
};

struct Hypot {
  static constexpr Text text{"hypot", "y = √(a² + b²), ∂y/∂a = a/y, ∂y/∂b = b/y, 0 where y = 0",
                             "distance of a point from the origin", 10};
  static constexpr bool floating = true;
  static auto value(const auto& a, const auto& b) { return hypot(a, b); }
  template <class V>
  static V da(const V& dy, const V& a, const V&, const V& y) {
    return dy * share_of(a, y);
  }
  template <class V>
  static V db(const V& dy, const V&, const V& b, const V& y) {
    return dy * share_of(b, y);
  }

 private:
  template <class V>
  static V share_of(const V& x, const V& y) {
    const V origin = equal(y, 0);
    return where(origin, 0, x / where(origin, 1, y));
  }
};

struct Logaddexp {
  static constexpr Text text{"logaddexp",
                             "y = log(exp(a) + exp(b)), ∂y/∂a = exp(a - y), ∂y/∂b = exp(b - y), "
                             "0 where y = -∞",
                             "logarithm of a sum of exponentials", 30};
  static constexpr bool magnifies = true;
  static constexpr bool floating = true;
  static auto value(const auto& a, const auto& b) {
    const auto most = larger(a, b);
    // An infinite maximum is the result; there, a - b may be NaN.
    return choose(most - most + 1, most + log1p_of_fraction(decay(a - b)), most);
  }
  template <class V>
  static V da(const V& dy, const V& a, const V& b, const V&) {
    return dy * sigmoid(difference(a, b));
  }
  template <class V>
  static V db(const V& dy, const V& a, const V& b, const V&) {
    return dy * sigmoid(difference(b, a));
  }

 private:
  /// a − b; of infinities 0 where both are ∞, and −∞ where both are −∞.
  template <class V>
  static V difference(const V& a, const V& b) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const V are_infinite = logical_and(equal(a, b), equal(abs(a), infinity));
    return where(are_infinite, minimum(a, 0), a - b);
  }
};

struct Xlogy {
  static constexpr Text text{"xlogy",
                             "y = a·log(b), 0 at a = 0; ∂y/∂a = log b, ∂y/∂b = a/b, 0 at a = 0 ≥ b",
                             "product with a logarithm", 12};
  static constexpr bool magnifies = true;
  static constexpr bool floating = true;
  static auto value(const auto& a, const auto& b) {
    const auto product = a * logarithm(b);
    const auto zero = choose(b * b + 1, a + 0, b);  // 0, or NaN if an operand is NaN
    return choose(a, product, choose(-a, product, zero));
  }
  template <class V>
  static V da(const V& dy, const V& a, const V& b, const V&) {
    return dy * log(where(is_empty(a, b), 1, b));
  }
  template <class V>
  static V db(const V& dy, const V& a, const V& b, const V&) {
    const V empty = is_empty(a, b);
    return dy * where(empty, 0, a) / where(empty, 1, b);
  }

 private:
  template <class V>
  static V is_empty(const V& a, const V& b) {
    return logical_and(equal(a, 0), less_equal(b, 0));
  }
};

struct Fmod {
  static constexpr Text text{"fmod", "y = a - b·trunc(a/b), ∂y/∂a = 1, ∂y/∂b = -trunc(a/b)",
                             "rest of a division, with the sign of a; of integers: a where b = 0",
                             20};
  static auto value(const auto& a, const auto& b) { return fmod(a, b); }
  template <class V>
  static V da(const V& dy, const V&, const V&, const V&) {
    return dy;
  }
  template <class V>
  static V db(const V& dy, const V& a, const V& b, const V& y) {
    return -(dy * round((a - y) / b));
  }
};

struct Remainder {
  static constexpr Text text{"remainder", "y = a - b·⌊a/b⌋, ∂y/∂a = 1, ∂y/∂b = -⌊a/b⌋",
                             "rest of a division, with the sign of b; of integers: a where b = 0",
                             20};
  static auto value(const auto& a, const auto& b) { return floor_mod(a, b); }
  template <class V>
  static V da(const V& dy, const V&, const V&, const V&) {
    return dy;
  }
  template <class V>
  static V db(const V& dy, const V& a, const V& b, const V& y) {
    return -(dy * round((a - y) / b));
  }
};

struct Copysign {
  static constexpr Text text{"copysign", "y = ±|a|, ∂y/∂a = ±sign(a), with the sign of b",
                             "magnitude of a with the sign of b, also of zeros", 1};
  static constexpr bool floating = true;
  static auto value(const auto& a, const auto& b) { return copysign(a, b); }
  template <class V>
  static V da(const V& dy, const V& a, const V& b, const V&) {
    const V sign_of_a = sign(a);
    return dy * (sign_of_a * copysign(sign_of_a, b));
  }
};

/// Every function above, in the order of the documentation.
using Binary = List<Add, Subtract, Multiply, Divide, Minimum, Maximum, Share, Pow, Atan2, Hypot,
                    Logaddexp, Xlogy, Fmod, Remainder, Copysign, BceWithLogits>;

struct Greater {
  static constexpr Text text{"greater", "y = a > b", "comparison", 1};
  static bool value(auto a, auto b) { return a > b; }
};

struct GreaterEqual {
  static constexpr Text text{"greater_equal", "y = a ≥ b", "comparison", 1};
  static bool value(auto a, auto b) { return a >= b; }
};

struct Less {
  static constexpr Text text{"less", "y = a < b", "comparison", 1};
  static bool value(auto a, auto b) { return a < b; }
};

struct LessEqual {
  static constexpr Text text{"less_equal", "y = a ≤ b", "comparison", 1};
  static bool value(auto a, auto b) { return a <= b; }
};

struct Equal {
  static constexpr Text text{"equal", "y = a = b", "comparison", 1};
  static bool value(auto a, auto b) { return a == b; }
};

struct NotEqual {
  static constexpr Text text{"not_equal", "y = a ≠ b", "comparison", 1};
  static bool value(auto a, auto b) { return a != b; }
};

/// The comparisons. Their result is bool; no derivative flows.
using Comparison = List<Greater, GreaterEqual, Less, LessEqual, Equal, NotEqual>;

}  // namespace palimpsest::functions

namespace palimpsest PALIMPSEST_EXPORT {

// Elementwise. Operands broadcast and are promoted to a common dtype. In `minimum`, `maximum` and
// comparisons one operand may be a number, in `pow` the first. They throw `ShapeError` for shapes
// that do not broadcast, and `ArgumentError` for a whole number that the dtype of an integer or
// bool operand cannot hold. All but comparisons throw `DTypeError` for two operands of bool.
// `share`, `pow`, `atan2`, `hypot`, `logaddexp`, `xlogy` and `copysign` throw it unless an operand
// is floating.

auto add(const IsVar auto& a, const IsVar auto& b, Where where = Where::current()) {
  return binary<functions::Add>(a, b, where);
}
auto subtract(const IsVar auto& a, const IsVar auto& b, Where where = Where::current()) {
  return binary<functions::Subtract>(a, b, where);
}
auto multiply(const IsVar auto& a, const IsVar auto& b, Where where = Where::current()) {
  return binary<functions::Multiply>(a, b, where);
}
auto divide(const IsVar auto& a, const IsVar auto& b, Where where = Where::current()) {
  return binary<functions::Divide>(a, b, where);
}
/// The smaller operand; NaN if either is NaN. Where both are equal, each gets half of the adjoint.
auto minimum(const IsVar auto& a, const IsVarOrNumber auto& b, Where where = Where::current()) {
  return binary<functions::Minimum>(a, b, where);
}
auto minimum(double a, const IsVar auto& b, Where where = Where::current()) {
  return binary<functions::Minimum>(a, b, where);
}
/// The larger operand; NaN if either is NaN. Where both are equal, each gets half of the adjoint.
auto maximum(const IsVar auto& a, const IsVarOrNumber auto& b, Where where = Where::current()) {
  return binary<functions::Maximum>(a, b, where);
}
auto maximum(double a, const IsVar auto& b, Where where = Where::current()) {
  return binary<functions::Maximum>(a, b, where);
}
/// 1 where a > b, 0 where a < b, else 1/2. No derivative flows.
auto share(const IsVar auto& a, const IsVar auto& b, Where where = Where::current()) {
  return binary<functions::Share>(a, b, where);
}
/// a to the power b; a may be a number. A negative a gives NaN where b is not whole.
auto pow(const IsVarOrNumber auto& a, const IsVar auto& b, Where where = Where::current()) {
  return binary<functions::Pow>(a, b, where);
}
/// The angle of the point with abscissa b and ordinate a, in radians, in [−π, π].
auto atan2(const IsVar auto& a, const IsVar auto& b, Where where = Where::current()) {
  return binary<functions::Atan2>(a, b, where);
}

/// √(a² + b²), without overflow. All derivatives at (0, 0) are defined as 0.
auto hypot(const IsVar auto& a, const IsVar auto& b, Where where = Where::current()) {
  return binary<functions::Hypot>(a, b, where);
}
/// log(eᵃ + eᵇ), without overflow. Operands may be −∞; where both are, the derivatives are 0.
auto logaddexp(const IsVar auto& a, const IsVar auto& b, Where where = Where::current()) {
  return binary<functions::Logaddexp>(a, b, where);
}
/// a·log(b), and 0 where a is 0, unless b is NaN; either may be a number.
template <class A, class B>
  requires(IsVar<A> || IsVar<B>)
auto xlogy(const A& a, const B& b, Where where = Where::current()) {
  return binary<functions::Xlogy>(a, b, where);
}
/// a − b·trunc(a/b), the rest of a division with the sign of a, as `%` of C++; b may be a number.
/// Also for integers, where it is a if b is 0.
auto fmod(const IsVar auto& a, const IsVarOrNumber auto& b, Where where = Where::current()) {
  return binary<functions::Fmod>(a, b, where);
}
/// a − b·⌊a/b⌋, the rest of a division with the sign of b, as `%` of Python; b may be a number.
/// Also for integers, where it is a if b is 0. (C's `remainder` rounds the quotient to nearest
/// instead.)
auto remainder(const IsVar auto& a, const IsVarOrNumber auto& b, Where where = Where::current()) {
  return binary<functions::Remainder>(a, b, where);
}
/// |a| with the sign of b, also that of a zero. No derivative flows to b, and that of a is 0 at 0.
auto copysign(const IsVar auto& a, const IsVar auto& b, Where where = Where::current()) {
  return binary<functions::Copysign>(a, b, where);
}

// Comparisons. Any dtype; the result is bool, and no derivative flows.

auto greater(const IsVar auto& a, const IsVarOrNumber auto& b, Where where = Where::current()) {
  return comparison<functions::Greater>(a, b, where);
}
auto greater_equal(const IsVar auto& a, const IsVarOrNumber auto& b,
                   Where where = Where::current()) {
  return comparison<functions::GreaterEqual>(a, b, where);
}
auto less(const IsVar auto& a, const IsVarOrNumber auto& b, Where where = Where::current()) {
  return comparison<functions::Less>(a, b, where);
}
auto less_equal(const IsVar auto& a, const IsVarOrNumber auto& b, Where where = Where::current()) {
  return comparison<functions::LessEqual>(a, b, where);
}
auto equal(const IsVar auto& a, const IsVarOrNumber auto& b, Where where = Where::current()) {
  return comparison<functions::Equal>(a, b, where);
}
auto not_equal(const IsVar auto& a, const IsVarOrNumber auto& b, Where where = Where::current()) {
  return comparison<functions::NotEqual>(a, b, where);
}

// A number on the left: the comparison is recorded with the operands swapped.

auto greater(double a, const IsVar auto& b, Where where = Where::current()) {
  return comparison<functions::Less>(b, a, where);
}
auto greater_equal(double a, const IsVar auto& b, Where where = Where::current()) {
  return comparison<functions::LessEqual>(b, a, where);
}
auto less(double a, const IsVar auto& b, Where where = Where::current()) {
  return comparison<functions::Greater>(b, a, where);
}
auto less_equal(double a, const IsVar auto& b, Where where = Where::current()) {
  return comparison<functions::GreaterEqual>(b, a, where);
}
auto equal(double a, const IsVar auto& b, Where where = Where::current()) {
  return comparison<functions::Equal>(b, a, where);
}
auto not_equal(double a, const IsVar auto& b, Where where = Where::current()) {
  return comparison<functions::NotEqual>(b, a, where);
}

}  // namespace palimpsest
