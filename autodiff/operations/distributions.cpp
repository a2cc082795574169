// Distributions that are functions of uniform or normal numbers, or of gamma variates.
#include <cmath>
#include <limits>
#include <numbers>

#include "autodiff/number_text.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/activation.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/functions/exponential.h"
#include "autodiff/operations/functions/trigonometric.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/normalization.h"
#include "autodiff/operations/random.h"
#include "autodiff/operations/random_attributes.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"

namespace palimpsest {
namespace {

/// The distance that uniform numbers keep from 0 and 1. Functions that are infinite there need it
/// to be finite.
double smallest_uniform(DType dtype) { return dtype == DType::f64 ? 0x1p-54 : 0x1p-25; }

/// location + scale·x, in `dtype`.
Var located(const Var& x, double location, double scale, DType dtype, const Where& where) {
  const Var scaled = scale == 1 ? x : Located(x, where) * scale;
  return cast(location == 0 ? scaled : Located(scaled, where) + location, dtype, where);
}

void require_scale(double scale, const char* operation, const Where& where) {
  if (scale > 0 && scale < std::numeric_limits<double>::infinity()) return;
  throw ArgumentError(
      operation, "the scale is " + number_text(scale) + "; give a positive finite number", where);
}

/// Promotes two parameters, which must be floating, to a common dtype.
DType parameter_dtype(const Var& a, const Var& b, const char* operation, const Where& where) {
  const Var both[] = {a, b};
  common_tape(both, operation, where);
  const DType dtype = promote(a.dtype(), b.dtype());
  require_real(dtype, operation, where);
  return dtype;
}

/// Standard Gumbel numbers, −log(−log u).
Var standard_gumbel(Tape& tape, const Shape& shape, DType wide, const Where& where) {
  const Var u = uniform(tape, shape, 0, 1, wide, where);
  const Var positive = maximum(u, smallest_uniform(wide), where);
  return negate(log(negate(log(positive, where), where), where), where);
}

/// Logarithms of gamma variates in the compute dtype, which cannot overflow.
Var wide_log_gamma(const Var& concentration, DType dtype, const Where& where) {
  return log_gamma_variate(cast(concentration, compute_dtype(dtype), where), where);
}

}  // namespace

Var normal(const Var& mean, const Var& deviation, Where where) {
  const DType dtype = parameter_dtype(mean, deviation, "normal", where);
  const Shape shape = broadcast(mean.shape(), deviation.shape(), "normal", where);
  const Var z = normal(mean.tape(), shape, 0, 1, dtype, where);
  return add(mean, multiply(deviation, z, where), where);
}

Var bernoulli(const Var& p, DType dtype, Where where) {
  require_floating(p, "bernoulli", where);
  const Var u = uniform(p.tape(), p.shape(), 0, 1, compute_dtype(p.dtype()), where);
  return cast(less(u, p, where), dtype, where);
}

Var randint(Tape& tape, std::int64_t low, std::int64_t high, const Shape& shape, DType dtype,
            Where where) {
  constexpr std::int64_t most = std::int64_t{1} << 53;
  if (!(low < high) || low < -most || high > most || high - low > most) {
    throw ArgumentError("randint",
                        "[" + number_text(low) + ", " + number_text(high) +
                            ") is not a range of up to 2^53 integers; give low < high",
                        where);
  }
  // Integers below the range would be rounded to it, so numbers are drawn from 0 on.
  const Var u = uniform(tape, shape, 0, static_cast<double>(high - low), DType::f64, where);
  const Var whole = cast(floor(u, where), DType::i64, where);
  return cast(Located(whole, where) + static_cast<double>(low), dtype, where);
}

Var exponential(Tape& tape, const Shape& shape, double rate, DType dtype, Where where) {
  require_real(dtype, "exponential", where);
  require_scale(rate, "exponential", where);
  const Var u = uniform(tape, shape, 0, 1, compute_dtype(dtype), where);
  return located(log1p(negate(u, where), where), 0, -1 / rate, dtype, where);
}

Var laplace(Tape& tape, const Shape& shape, double location, double scale, DType dtype,
            Where where) {
  require_real(dtype, "laplace", where);
  require_scale(scale, "laplace", where);
  const DType wide = compute_dtype(dtype);
  const Var u = uniform(tape, shape, smallest_uniform(wide) - 1, 1, wide, where);
  const Var size = log1p(negate(abs(u, where), where), where);
  return located(multiply(sign(u, where), size, where), location, -scale, dtype, where);
}

Var gumbel(Tape& tape, const Shape& shape, double location, double scale, DType dtype,
           Where where) {
  require_real(dtype, "gumbel", where);
  require_scale(scale, "gumbel", where);
  const Var x = standard_gumbel(tape, shape, compute_dtype(dtype), where);
  return located(x, location, scale, dtype, where);
}

Var cauchy(Tape& tape, const Shape& shape, double location, double scale, DType dtype,
           Where where) {
  require_real(dtype, "cauchy", where);
  require_scale(scale, "cauchy", where);
  constexpr double right_angle = std::numbers::pi / 2;
  const DType wide = compute_dtype(dtype);
  const Var u = uniform(tape, shape, smallest_uniform(wide) - 1, 1, wide, where);
  return located(tan(Located(u, where) * right_angle, where), location, scale, dtype, where);
}

Var gamma(const Var& concentration, Where where) {
  require_floating(concentration, "gamma", where);
  const DType dtype = concentration.dtype();
  return cast(exp(wide_log_gamma(concentration, dtype, where), where), dtype, where);
}

Var gamma(Tape& tape, const Shape& shape, double concentration, double scale, DType dtype,
          Where where) {
  require_real(dtype, "gamma", where);
  require_scale(scale, "gamma", where);
  const Var given = full(tape, shape, concentration, compute_dtype(dtype), where);
  return located(gamma(given, where), 0, scale, dtype, where);
}

Var beta(const Var& a, const Var& b, Where where) {
  const DType dtype = parameter_dtype(a, b, "beta", where);
  const Shape shape = broadcast(a.shape(), b.shape(), "beta", where);
  // x/(x + y) of gamma variates x and y, which may both be too small for their dtype
  const auto variate = [&](const Var& given) {
    return wide_log_gamma(broadcast_to(given, shape, where), dtype, where);
  };
  const Var x = variate(a);
  return cast(sigmoid(subtract(x, variate(b), where), where), dtype, where);
}

Var dirichlet(const Var& concentration, Where where) {
  require_floating(concentration, "dirichlet", where);
  const DType dtype = concentration.dtype();
  return cast(softmax(wide_log_gamma(concentration, dtype, where), -1, where), dtype, where);
}

Var categorical(const Var& logits, int axis, Where where) {
  require_floating(logits, "categorical", where);
  const Shape shape = logits.shape();
  const int along = shape.wrap(axis, "categorical", where);
  // The Gumbel-max trick (Gumbel, 1954)
  const Var noise = standard_gumbel(logits.tape(), shape, compute_dtype(logits.dtype()), where);
  return argmax(add(stop_gradient(logits, where), noise, where), {along}, false, where);
}

}  // namespace palimpsest
