#pragma once

#include <array>
#include <optional>

#include "autodiff/export.h"
#include "autodiff/operations/functions/function.h"
#include "autodiff/operations/functions/loss.h"

/// Functions of two variables, defined as functions/function.h describes. `da` and `db` record the
/// adjoint of one operand before it is summed to that operand's shape; without them no derivative
/// flows. `floating` marks functions without integer support. `neutral` holds each operand's
/// neutral element: it leaves the other operand unchanged, bit for bit.
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

/// Every function above, in the order of the documentation.
using Binary =
    List<Add, Subtract, Multiply, Divide, Minimum, Maximum, Share, Pow, Atan2, BceWithLogits>;

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
// comparisons one operand may be a number, in `pow` the first. They throw as `record_binary` does;
// `share`, `pow` and `atan2` throw `DTypeError` for integers too.

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
