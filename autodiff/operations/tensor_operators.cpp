#include "autodiff/operations/tensor_operators.h"

#include <cstring>

#include "autodiff/operations/evaluation.h"

namespace palimpsest {
namespace {

/// Computes `f` of the tensor.
template <class F>
Tensor computed(std::string_view operation, const LocatedTensor& t, F f) {
  Evaluation on(operation, t.where);
  const Var x = on(t.tensor);
  return on.result(f(Located(x, t.where)));
}

/// Writes `result` over the elements of t.
Tensor& overwrite(Tensor& t, const Tensor& result, std::string_view operation, const Where& where) {
  const std::string types =
      "a tensor of " + to_string(t.type()) + " cannot take a result of " + to_string(result.type());
  if (result.shape() != t.shape()) {
    throw ShapeError(operation, types + "; assign the result to a new tensor", where);
  }
  if (is_floating(result.dtype()) && !is_floating(t.dtype())) {
    throw DTypeError(operation, types + "; convert one operand with to()", where);
  }
  std::memcpy(t.raw(), result.to(t.dtype()).raw(), static_cast<std::size_t>(t.bytes()));
  return t;
}

}  // namespace

Tensor operator+(const LocatedTensor& a, const Tensor& b) { return add(a.tensor, b, a.where); }
Tensor operator-(const LocatedTensor& a, const Tensor& b) { return subtract(a.tensor, b, a.where); }
Tensor operator*(const LocatedTensor& a, const Tensor& b) { return multiply(a.tensor, b, a.where); }
Tensor operator/(const LocatedTensor& a, const Tensor& b) { return divide(a.tensor, b, a.where); }
Tensor operator>(const LocatedTensor& a, const Tensor& b) { return greater(a.tensor, b, a.where); }
Tensor operator>=(const LocatedTensor& a, const Tensor& b) {
  return greater_equal(a.tensor, b, a.where);
}
Tensor operator<(const LocatedTensor& a, const Tensor& b) { return less(a.tensor, b, a.where); }
Tensor operator<=(const LocatedTensor& a, const Tensor& b) {
  return less_equal(a.tensor, b, a.where);
}
Tensor operator-(const LocatedTensor& t) {
  return computed("negate", t, [](const Located& x) { return -x; });
}
Tensor operator+(const LocatedTensor& t, double a) {
  return computed("add", t, [&](const Located& x) { return x + a; });
}
Tensor operator+(double a, const LocatedTensor& t) {
  return computed("add", t, [&](const Located& x) { return a + x; });
}
Tensor operator-(const LocatedTensor& t, double a) {
  return computed("subtract", t, [&](const Located& x) { return x - a; });
}
Tensor operator-(double a, const LocatedTensor& t) {
  return computed("subtract", t, [&](const Located& x) { return a - x; });
}
Tensor operator*(const LocatedTensor& t, double a) {
  return computed("multiply", t, [&](const Located& x) { return x * a; });
}
Tensor operator*(double a, const LocatedTensor& t) {
  return computed("multiply", t, [&](const Located& x) { return a * x; });
}
Tensor operator/(const LocatedTensor& t, double a) {
  return computed("divide", t, [&](const Located& x) { return x / a; });
}
Tensor operator/(double a, const LocatedTensor& t) {
  return computed("divide", t, [&](const Located& x) { return a / x; });
}
Tensor operator>(const LocatedTensor& t, double a) {
  return computed("greater", t, [&](const Located& x) { return x > a; });
}
Tensor operator>(double a, const LocatedTensor& t) {
  return computed("greater", t, [&](const Located& x) { return a > x; });
}
Tensor operator>=(const LocatedTensor& t, double a) {
  return computed("greater_equal", t, [&](const Located& x) { return x >= a; });
}
Tensor operator>=(double a, const LocatedTensor& t) {
  return computed("greater_equal", t, [&](const Located& x) { return a >= x; });
}
Tensor operator<(const LocatedTensor& t, double a) {
  return computed("less", t, [&](const Located& x) { return x < a; });
}
Tensor operator<(double a, const LocatedTensor& t) {
  return computed("less", t, [&](const Located& x) { return a < x; });
}
Tensor operator<=(const LocatedTensor& t, double a) {
  return computed("less_equal", t, [&](const Located& x) { return x <= a; });
}
Tensor operator<=(double a, const LocatedTensor& t) {
  return computed("less_equal", t, [&](const Located& x) { return a <= x; });
}

Var operator+(const Located& a, const Tensor& b) { return add(a.var, b, a.where); }
Var operator+(const LocatedTensor& a, const Var& b) { return add(a.tensor, b, a.where); }
Var operator-(const Located& a, const Tensor& b) { return subtract(a.var, b, a.where); }
Var operator-(const LocatedTensor& a, const Var& b) { return subtract(a.tensor, b, a.where); }
Var operator*(const Located& a, const Tensor& b) { return multiply(a.var, b, a.where); }
Var operator*(const LocatedTensor& a, const Var& b) { return multiply(a.tensor, b, a.where); }
Var operator/(const Located& a, const Tensor& b) { return divide(a.var, b, a.where); }
Var operator/(const LocatedTensor& a, const Var& b) { return divide(a.tensor, b, a.where); }
Var operator>(const Located& a, const Tensor& b) { return greater(a.var, b, a.where); }
Var operator>(const LocatedTensor& a, const Var& b) { return greater(a.tensor, b, a.where); }
Var operator>=(const Located& a, const Tensor& b) { return greater_equal(a.var, b, a.where); }
Var operator>=(const LocatedTensor& a, const Var& b) { return greater_equal(a.tensor, b, a.where); }
Var operator<(const Located& a, const Tensor& b) { return less(a.var, b, a.where); }
Var operator<(const LocatedTensor& a, const Var& b) { return less(a.tensor, b, a.where); }
Var operator<=(const Located& a, const Tensor& b) { return less_equal(a.var, b, a.where); }
Var operator<=(const LocatedTensor& a, const Var& b) { return less_equal(a.tensor, b, a.where); }

Tensor operator!(const LocatedTensor& t) { return logical_not(t.tensor, t.where); }
Tensor operator&&(const LocatedTensor& a, const Tensor& b) {
  return logical_and(a.tensor, b, a.where);
}
Var operator&&(const Located& a, const Tensor& b) { return logical_and(a.var, b, a.where); }
Var operator&&(const LocatedTensor& a, const Var& b) { return logical_and(a.tensor, b, a.where); }
Tensor operator||(const LocatedTensor& a, const Tensor& b) {
  return logical_or(a.tensor, b, a.where);
}
Var operator||(const Located& a, const Tensor& b) { return logical_or(a.var, b, a.where); }
Var operator||(const LocatedTensor& a, const Var& b) { return logical_or(a.tensor, b, a.where); }

Tensor& operator+=(Tensor& t, const LocatedTensor& u) {
  return overwrite(t, add(t, u.tensor, u.where), "add", u.where);
}
Tensor& operator+=(Tensor& t, const LocatedNumber& a) {
  return overwrite(t, LocatedTensor(t, a.where) + a.number, "add", a.where);
}
Tensor& operator-=(Tensor& t, const LocatedTensor& u) {
  return overwrite(t, subtract(t, u.tensor, u.where), "subtract", u.where);
}
Tensor& operator-=(Tensor& t, const LocatedNumber& a) {
  return overwrite(t, LocatedTensor(t, a.where) - a.number, "subtract", a.where);
}
Tensor& operator*=(Tensor& t, const LocatedTensor& u) {
  return overwrite(t, multiply(t, u.tensor, u.where), "multiply", u.where);
}
Tensor& operator*=(Tensor& t, const LocatedNumber& a) {
  return overwrite(t, LocatedTensor(t, a.where) * a.number, "multiply", a.where);
}
Tensor& operator/=(Tensor& t, const LocatedTensor& u) {
  return overwrite(t, divide(t, u.tensor, u.where), "divide", u.where);
}
Tensor& operator/=(Tensor& t, const LocatedNumber& a) {
  return overwrite(t, LocatedTensor(t, a.where) / a.number, "divide", a.where);
}

Var& operator+=(Var& x, const LocatedTensor& t) { return x = add(x, t.tensor, t.where); }
Var& operator-=(Var& x, const LocatedTensor& t) { return x = subtract(x, t.tensor, t.where); }
Var& operator*=(Var& x, const LocatedTensor& t) { return x = multiply(x, t.tensor, t.where); }
Var& operator/=(Var& x, const LocatedTensor& t) { return x = divide(x, t.tensor, t.where); }

Tensor Tensor::operator[](const Index& index) const { return (*this)[{index}]; }

Tensor Tensor::operator[](std::initializer_list<Index> indices) const {
  if (indices.size() == 0) return clone();
  Evaluation on("index", indices.begin()->where());
  const Tensor made = on.result(on(*this)[indices]);
  return made.raw() == raw() ? made.clone() : made;  // a reshaped tensor shares the storage
}

}  // namespace palimpsest
