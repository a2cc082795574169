// Written by tools/tensor_functions.py, as `./dev docs` does. Do not edit.
#include "autodiff/operations/tensor_functions.h"

#include "autodiff/operations/evaluation.h"

namespace palimpsest {

Tensor isnan(const Tensor& x, Where where) {
  Evaluation on("isnan", where);
  return on.result(palimpsest::isnan(on(x), where));
}

Tensor isinf(const Tensor& x, Where where) {
  Evaluation on("isinf", where);
  return on.result(palimpsest::isinf(on(x), where));
}

Tensor isposinf(const Tensor& x, Where where) {
  Evaluation on("isposinf", where);
  return on.result(palimpsest::isposinf(on(x), where));
}

Tensor isneginf(const Tensor& x, Where where) {
  Evaluation on("isneginf", where);
  return on.result(palimpsest::isneginf(on(x), where));
}

Tensor isfinite(const Tensor& x, Where where) {
  Evaluation on("isfinite", where);
  return on.result(palimpsest::isfinite(on(x), where));
}

Tensor signbit(const Tensor& x, Where where) {
  Evaluation on("signbit", where);
  return on.result(palimpsest::signbit(on(x), where));
}

Tensor isclose(const Tensor& a, const Tensor& b, const CloseOptions& options, Where where) {
  Evaluation on("isclose", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::isclose(on_a, on_b, options, where));
}

Tensor logical_xor(const Tensor& a, const Tensor& b, Where where) {
  Evaluation on("logical_xor", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::logical_xor(on_a, on_b, where));
}

Tensor nan_to_num(const Tensor& x, const NanToNumOptions& options, Where where) {
  Evaluation on("nan_to_num", where);
  return on.result(palimpsest::nan_to_num(on(x), options, where));
}

Tensor fmax(const Tensor& a, const Tensor& b, Where where) {
  Evaluation on("fmax", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::fmax(on_a, on_b, where));
}

Tensor fmin(const Tensor& a, const Tensor& b, Where where) {
  Evaluation on("fmin", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::fmin(on_a, on_b, where));
}

Tensor heaviside(const Tensor& x, const Tensor& value, Where where) {
  Evaluation on("heaviside", where);
  const Var on_x = on(x);
  const Var on_value = on(value);
  return on.result(palimpsest::heaviside(on_x, on_value, where));
}

Tensor clamp(const Tensor& x, const Tensor& low, const Tensor& high, Where where) {
  Evaluation on("clamp", where);
  const Var on_x = on(x);
  const Var on_low = on(low);
  const Var on_high = on(high);
  return on.result(palimpsest::clamp(on_x, on_low, on_high, where));
}

Tensor clamp_min(const Tensor& x, double low, Where where) {
  Evaluation on("clamp_min", where);
  return on.result(palimpsest::clamp_min(on(x), low, where));
}

Tensor clamp_max(const Tensor& x, double high, Where where) {
  Evaluation on("clamp_max", where);
  return on.result(palimpsest::clamp_max(on(x), high, where));
}

Tensor frac(const Tensor& x, Where where) {
  Evaluation on("frac", where);
  return on.result(palimpsest::frac(on(x), where));
}

Tensor rad2deg(const Tensor& x, Where where) {
  Evaluation on("rad2deg", where);
  return on.result(palimpsest::rad2deg(on(x), where));
}

Tensor deg2rad(const Tensor& x, Where where) {
  Evaluation on("deg2rad", where);
  return on.result(palimpsest::deg2rad(on(x), where));
}

Tensor ldexp(const Tensor& x, const Tensor& exponent, Where where) {
  Evaluation on("ldexp", where);
  const Var on_x = on(x);
  const Var on_exponent = on(exponent);
  return on.result(palimpsest::ldexp(on_x, on_exponent, where));
}

Tensor floor_divide(const Tensor& a, const Tensor& b, Where where) {
  Evaluation on("floor_divide", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::floor_divide(on_a, on_b, where));
}

Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, double value, Where where) {
  Evaluation on("addcmul", where);
  const Var on_x = on(x);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::addcmul(on_x, on_a, on_b, value, where));
}

Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, double value, Where where) {
  Evaluation on("addcdiv", where);
  const Var on_x = on(x);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::addcdiv(on_x, on_a, on_b, value, where));
}

Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight, Where where) {
  Evaluation on("lerp", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  const Var on_weight = on(weight);
  return on.result(palimpsest::lerp(on_a, on_b, on_weight, where));
}

Tensor lerp(const Tensor& a, const Tensor& b, double weight, Where where) {
  Evaluation on("lerp", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::lerp(on_a, on_b, weight, where));
}

Tensor logaddexp2(const Tensor& a, const Tensor& b, Where where) {
  Evaluation on("logaddexp2", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::logaddexp2(on_a, on_b, where));
}

Tensor logit(const Tensor& x, double eps, Where where) {
  Evaluation on("logit", where);
  return on.result(palimpsest::logit(on(x), eps, where));
}

Tensor logsigmoid(const Tensor& x, Where where) {
  Evaluation on("logsigmoid", where);
  return on.result(palimpsest::logsigmoid(on(x), where));
}

Tensor entr(const Tensor& x, Where where) {
  Evaluation on("entr", where);
  return on.result(palimpsest::entr(on(x), where));
}

Tensor ndtr(const Tensor& x, Where where) {
  Evaluation on("ndtr", where);
  return on.result(palimpsest::ndtr(on(x), where));
}

Tensor mvlgamma(const Tensor& x, int p, Where where) {
  Evaluation on("mvlgamma", where);
  return on.result(palimpsest::mvlgamma(on(x), p, where));
}

Tensor igamma(const Tensor& a, const Tensor& x, Where where) {
  Evaluation on("igamma", where);
  const Var on_a = on(a);
  const Var on_x = on(x);
  return on.result(palimpsest::igamma(on_a, on_x, where));
}

Tensor igammac(const Tensor& a, const Tensor& x, Where where) {
  Evaluation on("igammac", where);
  const Var on_a = on(a);
  const Var on_x = on(x);
  return on.result(palimpsest::igammac(on_a, on_x, where));
}

Tensor zeta(const Tensor& x, const Tensor& q, Where where) {
  Evaluation on("zeta", where);
  const Var on_x = on(x);
  const Var on_q = on(q);
  return on.result(palimpsest::zeta(on_x, on_q, where));
}

Tensor relu6(const Tensor& x, Where where) {
  Evaluation on("relu6", where);
  return on.result(palimpsest::relu6(on(x), where));
}

Tensor hardsigmoid(const Tensor& x, Where where) {
  Evaluation on("hardsigmoid", where);
  return on.result(palimpsest::hardsigmoid(on(x), where));
}

Tensor hardswish(const Tensor& x, Where where) {
  Evaluation on("hardswish", where);
  return on.result(palimpsest::hardswish(on(x), where));
}

Tensor celu(const Tensor& x, double a, Where where) {
  Evaluation on("celu", where);
  return on.result(palimpsest::celu(on(x), a, where));
}

Tensor selu(const Tensor& x, Where where) {
  Evaluation on("selu", where);
  return on.result(palimpsest::selu(on(x), where));
}

Tensor softshrink(const Tensor& x, double bound, Where where) {
  Evaluation on("softshrink", where);
  return on.result(palimpsest::softshrink(on(x), bound, where));
}

Tensor hardshrink(const Tensor& x, double bound, Where where) {
  Evaluation on("hardshrink", where);
  return on.result(palimpsest::hardshrink(on(x), bound, where));
}

Tensor threshold(const Tensor& x, double bound, double value, Where where) {
  Evaluation on("threshold", where);
  return on.result(palimpsest::threshold(on(x), bound, value, where));
}

Tensor prelu(const Tensor& x, const Tensor& weight, Where where) {
  Evaluation on("prelu", where);
  const Var on_x = on(x);
  const Var on_weight = on(weight);
  return on.result(palimpsest::prelu(on_x, on_weight, where));
}

Tensor glu(const Tensor& x, int axis, Where where) {
  Evaluation on("glu", where);
  return on.result(palimpsest::glu(on(x), axis, where));
}

Tensor sum(const Tensor& x, const Axes& axes, bool keep_axes, Where where) {
  Evaluation on("sum", where);
  return on.result(palimpsest::sum(on(x), axes, keep_axes, where));
}

Tensor mean(const Tensor& x, const Axes& axes, bool keep_axes, Where where) {
  Evaluation on("mean", where);
  return on.result(palimpsest::mean(on(x), axes, keep_axes, where));
}

Tensor prod(const Tensor& x, const Axes& axes, bool keep_axes, Where where) {
  Evaluation on("prod", where);
  return on.result(palimpsest::prod(on(x), axes, keep_axes, where));
}

Tensor max(const Tensor& x, const Axes& axes, bool keep_axes, Where where) {
  Evaluation on("max", where);
  return on.result(palimpsest::max(on(x), axes, keep_axes, where));
}

Tensor min(const Tensor& x, const Axes& axes, bool keep_axes, Where where) {
  Evaluation on("min", where);
  return on.result(palimpsest::min(on(x), axes, keep_axes, where));
}

Tensor argmax(const Tensor& x, const Axes& axes, bool keep_axes, Where where) {
  Evaluation on("argmax", where);
  return on.result(palimpsest::argmax(on(x), axes, keep_axes, where));
}

Tensor argmin(const Tensor& x, const Axes& axes, bool keep_axes, Where where) {
  Evaluation on("argmin", where);
  return on.result(palimpsest::argmin(on(x), axes, keep_axes, where));
}

Tensor variance(const Tensor& x, const Axes& axes, double correction, bool keep_axes, Where where) {
  Evaluation on("variance", where);
  return on.result(palimpsest::variance(on(x), axes, correction, keep_axes, where));
}

Tensor standard_deviation(const Tensor& x, const Axes& axes, double correction, bool keep_axes,
                          Where where) {
  Evaluation on("standard_deviation", where);
  return on.result(palimpsest::standard_deviation(on(x), axes, correction, keep_axes, where));
}

Tensor norm(const Tensor& x, double p, const Axes& axes, bool keep_axes, Where where) {
  Evaluation on("norm", where);
  return on.result(palimpsest::norm(on(x), p, axes, keep_axes, where));
}

Tensor logsumexp(const Tensor& x, const Axes& axes, bool keep_axes, Where where) {
  Evaluation on("logsumexp", where);
  return on.result(palimpsest::logsumexp(on(x), axes, keep_axes, where));
}

Tensor cumsum(const Tensor& x, int axis, bool reverse, Where where) {
  Evaluation on("cumsum", where);
  return on.result(palimpsest::cumsum(on(x), axis, reverse, where));
}

Tensor cumprod(const Tensor& x, int axis, bool reverse, Where where) {
  Evaluation on("cumprod", where);
  return on.result(palimpsest::cumprod(on(x), axis, reverse, where));
}

TensorValuesAndIndices cummax(const Tensor& x, int axis, bool reverse, Where where) {
  Evaluation on("cummax", where);
  const ValuesAndIndices made = palimpsest::cummax(on(x), axis, reverse, where);
  const Var values[] = {made.values, made.indices};
  const std::vector<Tensor> all = on.results(values);
  return {all[0], all[1]};
}

TensorValuesAndIndices cummin(const Tensor& x, int axis, bool reverse, Where where) {
  Evaluation on("cummin", where);
  const ValuesAndIndices made = palimpsest::cummin(on(x), axis, reverse, where);
  const Var values[] = {made.values, made.indices};
  const std::vector<Tensor> all = on.results(values);
  return {all[0], all[1]};
}

Tensor logcumsumexp(const Tensor& x, int axis, bool reverse, Where where) {
  Evaluation on("logcumsumexp", where);
  return on.result(palimpsest::logcumsumexp(on(x), axis, reverse, where));
}

Tensor linear_recurrence(const Tensor& a, const Tensor& b, int axis, bool reverse, Where where) {
  Evaluation on("linear_recurrence", where);
  const Var on_a = on(a);
  const Var on_b = on(b);
  return on.result(palimpsest::linear_recurrence(on_a, on_b, axis, reverse, where));
}

Tensor all(const Tensor& x, const Axes& axes, bool keep_axes, Where where) {
  Evaluation on("all", where);
  return on.result(palimpsest::all(on(x), axes, keep_axes, where));
}

Tensor any(const Tensor& x, const Axes& axes, bool keep_axes, Where where) {
  Evaluation on("any", where);
  return on.result(palimpsest::any(on(x), axes, keep_axes, where));
}

}  // namespace palimpsest
