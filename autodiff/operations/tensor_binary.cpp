// Written by tools/tensor_functions.py, as `./dev docs` does. Do not edit.
#include "autodiff/operations/tensor_elementwise.h"

#include "autodiff/operations/evaluation.h"

namespace palimpsest {

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

Tensor hypot(const Tensor& a, const Tensor& b, Where where) {
  Evaluation on("hypot", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::hypot(on_a, on_b, where));
}

Tensor logaddexp(const Tensor& a, const Tensor& b, Where where) {
  Evaluation on("logaddexp", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::logaddexp(on_a, on_b, where));
}

Tensor fmod(const Tensor& a, const Tensor& b, Where where) {
  Evaluation on("fmod", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::fmod(on_a, on_b, where));
}

Tensor fmod(const Tensor& a, double b, Where where) {
  Evaluation on("fmod", where);
  return on.result(palimpsest::fmod(on(a), b, where));
}

Tensor remainder(const Tensor& a, const Tensor& b, Where where) {
  Evaluation on("remainder", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::remainder(on_a, on_b, where));
}

Tensor remainder(const Tensor& a, double b, Where where) {
  Evaluation on("remainder", where);
  return on.result(palimpsest::remainder(on(a), b, where));
}

Tensor copysign(const Tensor& a, const Tensor& b, Where where) {
  Evaluation on("copysign", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::copysign(on_a, on_b, where));
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
