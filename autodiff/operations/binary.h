#pragma once

#include "autodiff/located.h"
#include "autodiff/operations/binary_functions.h"

namespace palimpsest {

/// Records function `index` of `functions::Binary` on operands that broadcast and meet in the
/// promoted dtype. Throws `ShapeError` when the shapes do not broadcast, `DTypeError` for bool, and
/// for integers where the function takes floating dtypes only.
Var record_binary(std::size_t index, const Var& a, const Var& b, const Where& where);
/// The same for `functions::Comparison`; any dtype, the result is bool. False is less than true.
Var record_comparison(std::size_t index, const Var& a, const Var& b, const Where& where);

/// A scalar of one number in x's dtype; in f32, which PyTorch's default is too, when x is not
/// floating and the number is a fraction or not finite. Throws `ArgumentError` naming `operation`
/// for a whole number that x's dtype does not hold.
Var number_like(const Var& x, double number, const char* operation, const Where& where);

/// What is recorded for function `index` of `functions::Binary`.
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

// Comparisons element by element. `==` and `!=` compare the handles themselves; see `equal`.
Var operator>(const Located& a, const Var& b);
Var operator>=(const Located& a, const Var& b);
Var operator<(const Located& a, const Var& b);
Var operator<=(const Located& a, const Var& b);
Var operator>(const Located& x, double a);
Var operator>=(const Located& x, double a);
Var operator<(const Located& x, double a);
Var operator<=(const Located& x, double a);

/// y summed over the axes along which `shape` was broadcast to reach y's shape: the adjoint of
/// broadcasting.
Var sum_to(const Var& y, const Shape& shape, Where where = Where::current());

}  // namespace palimpsest
