// Written by tools/tensor_functions.py, as `./dev docs` does. Do not edit.
#include "autodiff/operations/tensor_functions.h"

#include "autodiff/operations/evaluation.h"

namespace palimpsest {

Tensor negate(const Tensor& x, Where where) {
  Evaluation on("negate", where);
  return on.result(palimpsest::negate(on(x), where));
}

Tensor reciprocal(const Tensor& x, Where where) {
  Evaluation on("reciprocal", where);
  return on.result(palimpsest::reciprocal(on(x), where));
}

Tensor square(const Tensor& x, Where where) {
  Evaluation on("square", where);
  return on.result(palimpsest::square(on(x), where));
}

Tensor sqrt(const Tensor& x, Where where) {
  Evaluation on("sqrt", where);
  return on.result(palimpsest::sqrt(on(x), where));
}

Tensor rsqrt(const Tensor& x, Where where) {
  Evaluation on("rsqrt", where);
  return on.result(palimpsest::rsqrt(on(x), where));
}

Tensor pow(const Tensor& x, double exponent, Where where) {
  Evaluation on("pow", where);
  return on.result(palimpsest::pow(on(x), exponent, where));
}

Tensor abs(const Tensor& x, Where where) {
  Evaluation on("abs", where);
  return on.result(palimpsest::abs(on(x), where));
}

Tensor sign(const Tensor& x, Where where) {
  Evaluation on("sign", where);
  return on.result(palimpsest::sign(on(x), where));
}

Tensor floor(const Tensor& x, Where where) {
  Evaluation on("floor", where);
  return on.result(palimpsest::floor(on(x), where));
}

Tensor ceil(const Tensor& x, Where where) {
  Evaluation on("ceil", where);
  return on.result(palimpsest::ceil(on(x), where));
}

Tensor round(const Tensor& x, Where where) {
  Evaluation on("round", where);
  return on.result(palimpsest::round(on(x), where));
}

Tensor clamp(const Tensor& x, double low, double high, Where where) {
  Evaluation on("clamp", where);
  return on.result(palimpsest::clamp(on(x), low, high, where));
}

Tensor exp(const Tensor& x, Where where) {
  Evaluation on("exp", where);
  return on.result(palimpsest::exp(on(x), where));
}

Tensor expm1(const Tensor& x, Where where) {
  Evaluation on("expm1", where);
  return on.result(palimpsest::expm1(on(x), where));
}

Tensor log(const Tensor& x, Where where) {
  Evaluation on("log", where);
  return on.result(palimpsest::log(on(x), where));
}

Tensor log1p(const Tensor& x, Where where) {
  Evaluation on("log1p", where);
  return on.result(palimpsest::log1p(on(x), where));
}

Tensor erf(const Tensor& x, Where where) {
  Evaluation on("erf", where);
  return on.result(palimpsest::erf(on(x), where));
}

Tensor sin(const Tensor& x, Where where) {
  Evaluation on("sin", where);
  return on.result(palimpsest::sin(on(x), where));
}

Tensor cos(const Tensor& x, Where where) {
  Evaluation on("cos", where);
  return on.result(palimpsest::cos(on(x), where));
}

Tensor tan(const Tensor& x, Where where) {
  Evaluation on("tan", where);
  return on.result(palimpsest::tan(on(x), where));
}

Tensor asin(const Tensor& x, Where where) {
  Evaluation on("asin", where);
  return on.result(palimpsest::asin(on(x), where));
}

Tensor acos(const Tensor& x, Where where) {
  Evaluation on("acos", where);
  return on.result(palimpsest::acos(on(x), where));
}

Tensor atan(const Tensor& x, Where where) {
  Evaluation on("atan", where);
  return on.result(palimpsest::atan(on(x), where));
}

Tensor sinh(const Tensor& x, Where where) {
  Evaluation on("sinh", where);
  return on.result(palimpsest::sinh(on(x), where));
}

Tensor cosh(const Tensor& x, Where where) {
  Evaluation on("cosh", where);
  return on.result(palimpsest::cosh(on(x), where));
}

Tensor tanh(const Tensor& x, Where where) {
  Evaluation on("tanh", where);
  return on.result(palimpsest::tanh(on(x), where));
}

Tensor asinh(const Tensor& x, Where where) {
  Evaluation on("asinh", where);
  return on.result(palimpsest::asinh(on(x), where));
}

Tensor acosh(const Tensor& x, Where where) {
  Evaluation on("acosh", where);
  return on.result(palimpsest::acosh(on(x), where));
}

Tensor atanh(const Tensor& x, Where where) {
  Evaluation on("atanh", where);
  return on.result(palimpsest::atanh(on(x), where));
}

Tensor relu(const Tensor& x, Where where) {
  Evaluation on("relu", where);
  return on.result(palimpsest::relu(on(x), where));
}

Tensor leaky_relu(const Tensor& x, double slope, Where where) {
  Evaluation on("leaky_relu", where);
  return on.result(palimpsest::leaky_relu(on(x), slope, where));
}

Tensor elu(const Tensor& x, double a, Where where) {
  Evaluation on("elu", where);
  return on.result(palimpsest::elu(on(x), a, where));
}

Tensor sigmoid(const Tensor& x, Where where) {
  Evaluation on("sigmoid", where);
  return on.result(palimpsest::sigmoid(on(x), where));
}

Tensor softplus(const Tensor& x, Where where) {
  Evaluation on("softplus", where);
  return on.result(palimpsest::softplus(on(x), where));
}

Tensor gelu(const Tensor& x, Where where) {
  Evaluation on("gelu", where);
  return on.result(palimpsest::gelu(on(x), where));
}

Tensor gelu_tanh(const Tensor& x, Where where) {
  Evaluation on("gelu_tanh", where);
  return on.result(palimpsest::gelu_tanh(on(x), where));
}

Tensor silu(const Tensor& x, Where where) {
  Evaluation on("silu", where);
  return on.result(palimpsest::silu(on(x), where));
}

Tensor mish(const Tensor& x, Where where) {
  Evaluation on("mish", where);
  return on.result(palimpsest::mish(on(x), where));
}

Tensor add(const Tensor& a, const Tensor& b, Where where) {
  Evaluation on("add", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::add(on_a, on_b, where));
}

Tensor subtract(const Tensor& a, const Tensor& b, Where where) {
  Evaluation on("subtract", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::subtract(on_a, on_b, where));
}

Tensor multiply(const Tensor& a, const Tensor& b, Where where) {
  Evaluation on("multiply", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::multiply(on_a, on_b, where));
}

Tensor divide(const Tensor& a, const Tensor& b, Where where) {
  Evaluation on("divide", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::divide(on_a, on_b, where));
}

Tensor minimum(const Tensor& a, const Tensor& b, Where where) {
  Evaluation on("minimum", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::minimum(on_a, on_b, where));
}

Tensor minimum(const Tensor& a, double b, Where where) {
  Evaluation on("minimum", where);
  return on.result(palimpsest::minimum(on(a), b, where));
}

Tensor minimum(double a, const Tensor& b, Where where) {
  Evaluation on("minimum", where);
  return on.result(palimpsest::minimum(a, on(b), where));
}

Tensor maximum(const Tensor& a, const Tensor& b, Where where) {
  Evaluation on("maximum", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::maximum(on_a, on_b, where));
}

Tensor maximum(const Tensor& a, double b, Where where) {
  Evaluation on("maximum", where);
  return on.result(palimpsest::maximum(on(a), b, where));
}

Tensor maximum(double a, const Tensor& b, Where where) {
  Evaluation on("maximum", where);
  return on.result(palimpsest::maximum(a, on(b), where));
}

Tensor share(const Tensor& a, const Tensor& b, Where where) {
  Evaluation on("share", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::share(on_a, on_b, where));
}

Tensor pow(const Tensor& a, const Tensor& b, Where where) {
  Evaluation on("pow", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::pow(on_a, on_b, where));
}

Tensor pow(double a, const Tensor& b, Where where) {
  Evaluation on("pow", where);
  return on.result(palimpsest::pow(a, on(b), where));
}

Tensor atan2(const Tensor& a, const Tensor& b, Where where) {
  Evaluation on("atan2", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::atan2(on_a, on_b, where));
}

Tensor greater(const Tensor& a, const Tensor& b, Where where) {
  Evaluation on("greater", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::greater(on_a, on_b, where));
}

Tensor greater(const Tensor& a, double b, Where where) {
  Evaluation on("greater", where);
  return on.result(palimpsest::greater(on(a), b, where));
}

Tensor greater_equal(const Tensor& a, const Tensor& b, Where where) {
  Evaluation on("greater_equal", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::greater_equal(on_a, on_b, where));
}

Tensor greater_equal(const Tensor& a, double b, Where where) {
  Evaluation on("greater_equal", where);
  return on.result(palimpsest::greater_equal(on(a), b, where));
}

Tensor less(const Tensor& a, const Tensor& b, Where where) {
  Evaluation on("less", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::less(on_a, on_b, where));
}

Tensor less(const Tensor& a, double b, Where where) {
  Evaluation on("less", where);
  return on.result(palimpsest::less(on(a), b, where));
}

Tensor less_equal(const Tensor& a, const Tensor& b, Where where) {
  Evaluation on("less_equal", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::less_equal(on_a, on_b, where));
}

Tensor less_equal(const Tensor& a, double b, Where where) {
  Evaluation on("less_equal", where);
  return on.result(palimpsest::less_equal(on(a), b, where));
}

Tensor equal(const Tensor& a, const Tensor& b, Where where) {
  Evaluation on("equal", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::equal(on_a, on_b, where));
}

Tensor equal(const Tensor& a, double b, Where where) {
  Evaluation on("equal", where);
  return on.result(palimpsest::equal(on(a), b, where));
}

Tensor not_equal(const Tensor& a, const Tensor& b, Where where) {
  Evaluation on("not_equal", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::not_equal(on_a, on_b, where));
}

Tensor not_equal(const Tensor& a, double b, Where where) {
  Evaluation on("not_equal", where);
  return on.result(palimpsest::not_equal(on(a), b, where));
}

Tensor greater(double a, const Tensor& b, Where where) {
  Evaluation on("greater", where);
  return on.result(palimpsest::greater(a, on(b), where));
}

Tensor greater_equal(double a, const Tensor& b, Where where) {
  Evaluation on("greater_equal", where);
  return on.result(palimpsest::greater_equal(a, on(b), where));
}

Tensor less(double a, const Tensor& b, Where where) {
  Evaluation on("less", where);
  return on.result(palimpsest::less(a, on(b), where));
}

Tensor less_equal(double a, const Tensor& b, Where where) {
  Evaluation on("less_equal", where);
  return on.result(palimpsest::less_equal(a, on(b), where));
}

Tensor equal(double a, const Tensor& b, Where where) {
  Evaluation on("equal", where);
  return on.result(palimpsest::equal(a, on(b), where));
}

Tensor not_equal(double a, const Tensor& b, Where where) {
  Evaluation on("not_equal", where);
  return on.result(palimpsest::not_equal(a, on(b), where));
}

Tensor sum_to(const Tensor& y, const Shape& shape, Where where) {
  Evaluation on("sum_to", where);
  return on.result(palimpsest::sum_to(on(y), shape, where));
}

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b, Where line) {
  Evaluation on("where", line);
  const Var on_condition = on(condition);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::where(on_condition, on_a, on_b, line));
}

Tensor where(const Tensor& condition, const Tensor& a, double b, Where line) {
  Evaluation on("where", line);
  const Var on_condition = on(condition);
  const Var on_a = on(a);
  return on.result(palimpsest::where(on_condition, on_a, b, line));
}

Tensor where(const Tensor& condition, double a, const Tensor& b, Where line) {
  Evaluation on("where", line);
  const Var on_condition = on(condition);
  const Var on_b = on(b);
  return on.result(palimpsest::where(on_condition, a, on_b, line));
}

Tensor where(const Tensor& condition, double a, double b, Where line) {
  Evaluation on("where", line);
  return on.result(palimpsest::where(on(condition), a, b, line));
}

Tensor logical_and(const Tensor& a, const Tensor& b, Where where) {
  Evaluation on("logical_and", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::logical_and(on_a, on_b, where));
}

Tensor logical_or(const Tensor& a, const Tensor& b, Where where) {
  Evaluation on("logical_or", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::logical_or(on_a, on_b, where));
}

Tensor logical_not(const Tensor& x, Where where) {
  Evaluation on("logical_not", where);
  return on.result(palimpsest::logical_not(on(x), where));
}

}  // namespace palimpsest
