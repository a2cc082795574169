#include "autodiff/operations/elementwise.h"

#include <cmath>
#include <numbers>
#include <string>

#include "autodiff/number_text.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/unary_functions.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"

namespace palimpsest {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// False in the shape of x.
Var nowhere(const Var& x, const Where& where) {
  return full(x.tape(), x.shape(), 0, DType::boolean, where);
}

void require_bound(double bound, const char* operation, const Where& where) {
  if (bound >= 0) return;
  throw ArgumentError(
      operation, "the bound is " + std::to_string(bound) + "; give a distance of 0 or more", where);
}

double largest_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return std::numeric_limits<double>::max();
    case DType::f16:
      return 65504;
    case DType::bf16:
      return 0x1.fep127;
    default:
      return std::numeric_limits<float>::max();
  }
}

}  // namespace

Var isnan(const Var& x, Where where) {
  require_value(x, "isnan", where);
  return not_equal(x, x, where);
}

Var isinf(const Var& x, Where where) {
  require_value(x, "isinf", where);
  return is_floating(x.dtype()) ? equal(abs(x, where), infinity, where) : nowhere(x, where);
}

Var isposinf(const Var& x, Where where) {
  require_value(x, "isposinf", where);
  return is_floating(x.dtype()) ? equal(x, infinity, where) : nowhere(x, where);
}

Var isneginf(const Var& x, Where where) {
  require_value(x, "isneginf", where);
  return is_floating(x.dtype()) ? equal(x, -infinity, where) : nowhere(x, where);
}

Var isfinite(const Var& x, Where where) {
  require_value(x, "isfinite", where);
  return is_floating(x.dtype()) ? less(abs(x, where), infinity, where)
                                : palimpsest::equal(x, x, where);
}

Var signbit(const Var& x, Where where) {
  require_value(x, "signbit", where);
  if (!is_floating(x.dtype())) return less(x, 0, where);
  return less(copysign(full(x.tape(), {}, 1, x.dtype(), where), x, where), 0, where);
}

Var isclose(const Var& a, const Var& b, const CloseOptions& options, Where where) {
  require_floating(a, "isclose", where);
  require_floating(b, "isclose", where);
  const Var distance = abs(subtract(a, b, where), where);
  const Var scaled = Located(abs(b, where), where) * options.relative;
  const Var near = less_equal(distance, Located(scaled, where) + options.absolute, where);
  // Infinities: the tolerance is infinite, so that only equal ones are close.
  Var close = logical_or(palimpsest::equal(a, b, where),
                         logical_and(near, isfinite(b, where), where), where);
  if (options.equal_nan) {
    close = logical_or(close, logical_and(isnan(a, where), isnan(b, where), where), where);
  }
  return close;
}

Var logical_xor(const Var& a, const Var& b, Where where) {
  for (const Var& x : {a, b}) {
    require_value(x, "logical_xor", where);
    if (x.dtype() == DType::boolean) continue;
    throw DTypeError(
        "logical_xor",
        "takes bool, not " + to_string(x.type()) + "; compare it first, for example x > 0", where);
  }
  return not_equal(a, b, where);
}

Var nan_to_num(const Var& x, const NanToNumOptions& options, Where where) {
  require_floating(x, "nan_to_num", where);
  const double largest = largest_of(x.dtype());
  const Var below =
      palimpsest::where(isneginf(x, where), options.neginf.value_or(-largest), x, where);
  const Var inside =
      palimpsest::where(isposinf(x, where), options.posinf.value_or(largest), below, where);
  return palimpsest::where(isnan(x, where), options.nan, inside, where);
}

Var fmax(const Var& a, const Var& b, Where where) {
  require_floating(a, "fmax", where);
  require_floating(b, "fmax", where);
  const Var either = palimpsest::where(isnan(a, where), b, maximum(a, b, where), where);
  return palimpsest::where(isnan(b, where), a, either, where);
}

Var fmin(const Var& a, const Var& b, Where where) {
  require_floating(a, "fmin", where);
  require_floating(b, "fmin", where);
  const Var either = palimpsest::where(isnan(a, where), b, minimum(a, b, where), where);
  return palimpsest::where(isnan(b, where), a, either, where);
}

Var heaviside(const Var& x, const Var& value, Where where) {
  require_floating(x, "heaviside", where);
  require_floating(value, "heaviside", where);
  const Var step = palimpsest::where(less(x, 0, where), 0, sign(x, where), where);
  return palimpsest::where(equal(x, 0, where), value, step, where);
}

Var clamp(const Var& x, const Var& low, const Var& high, Where where) {
  return minimum(maximum(x, low, where), high, where);
}

Var clamp_min(const Var& x, double low, Where where) { return clamp(x, low, infinity, where); }

Var clamp_max(const Var& x, double high, Where where) { return clamp(x, -infinity, high, where); }

Var frac(const Var& x, Where where) { return subtract(x, trunc(x, where), where); }

Var rad2deg(const Var& x, Where where) {
  require_floating(x, "rad2deg", where);
  return Located(x, where) * (180 / std::numbers::pi);
}

Var deg2rad(const Var& x, Where where) {
  require_floating(x, "deg2rad", where);
  return Located(x, where) * (std::numbers::pi / 180);
}

Var ldexp(const Var& x, const Var& exponent, Where where) {
  require_floating(x, "ldexp", where);
  require_value(exponent, "ldexp", where);
  const Var power = is_floating(exponent.dtype()) ? exponent : cast(exponent, x.dtype(), where);
  return multiply(x, exp2(power, where), where);
}

Var floor_divide(const Var& a, const Var& b, Where where) {
  const Var rest = remainder(a, b, where);
  const Var whole = divide(subtract(a, rest, where), b, where);
  return is_floating(whole.dtype()) ? round(whole, where) : whole;
}

Var addcmul(const Var& x, const Var& a, const Var& b, double value, Where where) {
  const Var product = multiply(a, b, where);
  return add(x, value == 1 ? product : Located(product, where) * value, where);
}

Var addcdiv(const Var& x, const Var& a, const Var& b, double value, Where where) {
  for (const Var& operand : {x, a, b}) require_floating(operand, "addcdiv", where);
  const Var quotient = divide(a, b, where);
  return add(x, value == 1 ? quotient : Located(quotient, where) * value, where);
}

Var lerp(const Var& a, const Var& b, const Var& weight, Where where) {
  for (const Var& x : {a, b, weight}) require_floating(x, "lerp", where);
  broadcast(broadcast(a.shape(), b.shape(), "lerp", where), weight.shape(), "lerp", where);
  const DType dtype = promote(promote(a.dtype(), b.dtype()), weight.dtype());
  if (is_half(dtype)) {  // differences of 16-bit numbers lose most digits
    const auto wide = [&](const Var& x) { return cast(x, DType::f32, where); };
    return cast(lerp(wide(a), wide(b), wide(weight), where), dtype, where);
  }
  const Var way = subtract(b, a, where);
  const Var from_a = add(a, multiply(weight, way, where), where);
  const Var from_b = subtract(b, multiply(way, 1 - Located(weight, where), where), where);
  return palimpsest::where(less(weight, 0.5, where), from_a, from_b, where);
}

Var lerp(const Var& a, const Var& b, double weight, Where where) {
  for (const Var& x : {a, b}) require_floating(x, "lerp", where);
  broadcast(a.shape(), b.shape(), "lerp", where);
  const DType dtype = promote(a.dtype(), b.dtype());
  if (is_half(dtype)) {
    const auto wide = [&](const Var& x) { return cast(x, DType::f32, where); };
    return cast(lerp(wide(a), wide(b), weight, where), dtype, where);
  }
  const Var way = subtract(b, a, where);
  if (weight < 0.5) return add(a, Located(way, where) * weight, where);
  return subtract(b, Located(way, where) * (1 - weight), where);
}

Var logaddexp2(const Var& a, const Var& b, Where where) {
  require_floating(a, "logaddexp2", where);
  require_floating(b, "logaddexp2", where);
  const Var natural = logaddexp(Located(a, where) * std::numbers::ln2,
                                Located(b, where) * std::numbers::ln2, where);
  return Located(natural, where) * std::numbers::log2e;
}

Var logit(const Var& x, double eps, Where where) {
  return logit(clamp(x, eps, 1 - eps, where), where);
}

Var logsigmoid(const Var& x, Where where) {
  require_floating(x, "logsigmoid", where);
  return negate(softplus(negate(x, where), where), where);
}

Var entr(const Var& x, Where where) {
  require_floating(x, "entr", where);
  return palimpsest::where(less(x, 0, where), -infinity, negate(xlogy(x, x, where), where), where);
}

Var ndtr(const Var& x, Where where) {
  require_floating(x, "ndtr", where);
  return Located(erfc(Located(x, where) * (-std::numbers::sqrt2 / 2), where), where) * 0.5;
}

Var mvlgamma(const Var& x, int p, Where where) {
  require_floating(x, "mvlgamma", where);
  if (p < 1) {
    throw ArgumentError("mvlgamma", "the dimension is " + std::to_string(p) + "; give 1 or more",
                        where);
  }
  Var total = lgamma(x, where);
  for (int i = 1; i < p; ++i) {
    total = add(total, lgamma(Located(x, where) - i * 0.5, where), where);
  }
  const double constant = std::log(std::numbers::pi) * p * (p - 1) / 4;
  return p == 1 ? total : Located(total, where) + constant;
}

Var relu6(const Var& x, Where where) { return hardtanh(x, 0, 6, where); }

Var hardsigmoid(const Var& x, Where where) {
  require_floating(x, "hardsigmoid", where);
  return Located(relu6(Located(x, where) + 3, where), where) / 6;
}

Var hardswish(const Var& x, Where where) {
  require_floating(x, "hardswish", where);
  const Var gate = relu6(Located(x, where) + 3, where);
  return Located(multiply(x, gate, where), where) / 6;
}

Var celu(const Var& x, double a, Where where) {
  require_floating(x, "celu", where);
  if (!(a > 0)) {
    throw ArgumentError("celu", "the factor is " + number_text(a) + "; give a positive number",
                        where);
  }
  if (a == 1) return elu(x, 1, where);
  return Located(elu(Located(x, where) / a, 1, where), where) * a;
}

Var selu(const Var& x, Where where) {
  return Located(elu(x, 1.6732632423543772848, where), where) * 1.0507009873554804934;
}

Var softshrink(const Var& x, double bound, Where where) {
  require_bound(bound, "softshrink", where);
  return subtract(x, clamp(x, -bound, bound, where), where);
}

Var hardshrink(const Var& x, double bound, Where where) {
  require_floating(x, "hardshrink", where);
  require_bound(bound, "hardshrink", where);
  return palimpsest::where(less_equal(abs(x, where), bound, where), 0, x, where);
}

Var threshold(const Var& x, double bound, double value, Where where) {
  require_floating(x, "threshold", where);
  return palimpsest::where(less_equal(x, bound, where), value, x, where);
}

Var prelu(const Var& x, const Var& weight, Where where) {
  require_floating(x, "prelu", where);
  require_floating(weight, "prelu", where);
  const std::int64_t count = weight.shape().elements();
  const Shape shape = x.shape();
  const std::int64_t channels = shape.rank() > 1 ? shape[1] : 1;
  if (weight.rank() > 1 || (count != 1 && count != channels)) {
    throw ShapeError("prelu",
                     "the weight has shape " + to_string(weight.shape()) + " for x " +
                         to_string(shape) + "; give one number, or " + std::to_string(channels),
                     where);
  }
  Shape aligned;
  if (count != 1) {
    for (int axis = 0; axis < shape.rank(); ++axis) aligned.push_back(axis == 1 ? channels : 1);
  }
  const Var slope = reshape(weight, aligned, where);
  return palimpsest::where(greater(x, 0, where), x, multiply(slope, clamp_max(x, 0, where), where),
                           where);
}

Var glu(const Var& x, int axis, Where where) {
  require_floating(x, "glu", where);
  const int wrapped = x.shape().wrap(axis, "glu", where);
  const std::int64_t n = x.shape()[wrapped];
  if (n % 2 != 0) {
    throw ShapeError("glu",
                     "axis " + std::to_string(axis) + " of shape " + to_string(x.shape()) +
                         " has an odd size; give an even one",
                     where);
  }
  const std::vector<Var> halves = split(x, {n / 2, n / 2}, wrapped, where);
  return multiply(halves[0], sigmoid(halves[1], where), where);
}

}  // namespace palimpsest
