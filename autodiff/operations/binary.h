#pragma once

#include "autodiff/export.h"
#include "autodiff/located.h"
#include "autodiff/operations/elementwise.h"
#include "autodiff/operations/functions/binary_functions.h"
#include "autodiff/var.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Records function `index` of `functions::Binary`. Operands are broadcast and promoted to a common
/// dtype. Throws `ShapeError` when the shapes do not broadcast, and `DTypeError` when that dtype is
/// bool, or is not floating and the function supports floating dtypes only.
Var record_binary(std::size_t index, const Var& a, const Var& b, const Where& where);
/// Records function `index` of `functions::Comparison`. Any dtype; the result is bool.
/// False < true.
Var record_comparison(std::size_t index, const Var& a, const Var& b, const Where& where);

/// A scalar constant in x's dtype. If x is not floating and the number is fractional or not finite,
/// it is f32, as in PyTorch by default. Throws `ArgumentError` naming `operation` for a whole
/// number that x's dtype cannot represent.
Var number_like(const Var& x, double number, const char* operation, const Where& where);

/// The operation of function `index` of `functions::Binary`.
const Operation& binary_operation(std::size_t index);

template <class F>
Var binary(const Var& a, const Var& b, const Where& where) {
  return record_binary(functions::position<F, functions::Binary>, a, b, where);
}
template <class F>
Var binary(const Var& a, double b, const Where& where) {
  return binary<F>(a, number_like(a, b, F::text.name, where), where);
}
template <class F>
Var binary(double a, const Var& b, const Where& where) {
  return binary<F>(number_like(b, a, F::text.name, where), b, where);
}
template <class F>
Var comparison(const Var& a, const Var& b, const Where& where) {
  return record_comparison(functions::position<F, functions::Comparison>, a, b, where);
}
template <class F>
Var comparison(const Var& a, double b, const Where& where) {
  return comparison<F>(a, number_like(a, b, F::text.name, where), where);
}

// Elementwise arithmetic; operands broadcast. Throws `ShapeError` when they do not, and
// `DTypeError` for two operands of bool.
// - Two values are promoted to a common dtype. A number takes the dtype of the value. With an
//   integer or bool value, a number with a fraction, an infinity or NaN is f32, and a whole number
//   that the dtype cannot hold throws `ArgumentError`.
// - Integers wrap around. Their quotient is truncated towards 0, and is 0 where the divisor is 0.

Var operator+(const Located& a, const Var& b);
Var operator-(const Located& a, const Var& b);
Var operator*(const Located& a, const Var& b);
Var operator/(const Located& a, const Var& b);
Var operator-(const Located& x);
Var operator+(const Located& x, double a);
Var operator+(double a, const Located& x);
Var operator-(const Located& x, double a);
Var operator-(double a, const Located& x);
Var operator*(const Located& x, double a);
Var operator*(double a, const Located& x);
Var operator/(const Located& x, double a);
Var operator/(double a, const Located& x);

// Elementwise comparisons. `==` and `!=` compare the handles themselves; see `equal`.
// `if (x > y)` does not compile, since a `Var` has no value until it is computed.
Var operator>(const Located& a, const Var& b);
Var operator>=(const Located& a, const Var& b);
Var operator<(const Located& a, const Var& b);
Var operator<=(const Located& a, const Var& b);
Var operator>(const Located& x, double a);
Var operator>=(const Located& x, double a);
Var operator<(const Located& x, double a);
Var operator<=(const Located& x, double a);
Var operator>(double a, const Located& x);
Var operator>=(double a, const Located& x);
Var operator<(double a, const Located& x);
Var operator<=(double a, const Located& x);

// x = x + y and so on. They record a new value and let the handle x refer to it. Other handles
// still refer to the old value.
Var& operator+=(Var& x, const Located& y);
Var& operator-=(Var& x, const Located& y);
Var& operator*=(Var& x, const Located& y);
Var& operator/=(Var& x, const Located& y);
Var& operator+=(Var& x, const LocatedNumber& a);
Var& operator-=(Var& x, const LocatedNumber& a);
Var& operator*=(Var& x, const LocatedNumber& a);
Var& operator/=(Var& x, const LocatedNumber& a);

/// The adjoint of broadcasting `shape` to y's shape: sums y over the broadcast axes.
Var sum_to(const Var& y, const Shape& shape, Where where = Where::current());

/// a where `condition` (bool) is true, b elsewhere. All three broadcast; a and b are promoted to a
/// common dtype. The adjoint flows to the elements that were selected. Throws `DTypeError` for a
/// condition that is not bool.
Var where(const Var& condition, const Var& a, const Var& b, Where line = Where::current());
Var where(const Var& condition, const Var& a, double b, Where line = Where::current());
Var where(const Var& condition, double a, const Var& b, Where line = Where::current());
/// Two numbers: the result is f32.
Var where(const Var& condition, double a, double b, Where line = Where::current());

/// Elementwise, on bools; operands broadcast. They throw `DTypeError` for other dtypes.
Var logical_and(const Var& a, const Var& b, Where where = Where::current());
Var logical_or(const Var& a, const Var& b, Where where = Where::current());
Var logical_not(const Var& x, Where where = Where::current());

// These functions as operators. They are elementwise: both sides are always recorded and computed,
// also where C++ would not evaluate the second one.
Var operator!(const Located& x);
Var operator&&(const Located& a, const Var& b);
Var operator||(const Located& a, const Var& b);

}  // namespace palimpsest
