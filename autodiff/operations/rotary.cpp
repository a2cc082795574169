#include <cmath>

#include "autodiff/number_text.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/functions/exponential.h"
#include "autodiff/operations/functions/trigonometric.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/sequence.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"

namespace palimpsest {
namespace {

/// 0, 1, … n − 1 in f64, recorded without a leaf.
Var counting(Tape& tape, std::int64_t n, const Where& where) {
  return Located(cumsum(full(tape, Shape{n}, 1, DType::f64, where), 0, false, where), where) - 1.0;
}

/// The angles of all pairs, (…, T, d/2).
Var rotary_angles(Tape& tape, const RotaryOptions& options, std::int64_t steps, std::int64_t width,
                  const Where& where) {
  const Var positions = options.positions.defined() ? cast(options.positions, DType::f64, where)
                                                    : Located(counting(tape, steps, where), where) +
                                                          static_cast<double>(options.offset);
  const double rate = -2 * std::log(options.base) / static_cast<double>(width);
  const Var speeds = exp(Located(counting(tape, width / 2, where), where) * rate, where);
  return multiply(unsqueeze(positions, -1, where), speeds, where);
}

void check_rotary(const Var& x, const RotaryOptions& options, const Where& where) {
  require_floating(x, "rotary_embedding", where);
  const Shape shape = x.shape();
  if (shape.rank() < 2 || shape.size(-1) % 2 != 0) {
    throw ShapeError("rotary_embedding",
                     "takes (…, T, d) with an even d, not " + to_string(shape) + "; reshape it",
                     where);
  }
  if (!(options.base > 0) || std::isinf(options.base)) {
    throw ArgumentError(
        "rotary_embedding",
        "the base is " + number_text(options.base) + "; give a positive finite number", where);
  }
  if (!options.positions.defined()) return;
  require_value(options.positions, "rotary_embedding", where);
  if (options.positions.dtype() == DType::boolean) {
    throw DTypeError("rotary_embedding", "positions are bool; give integers or real numbers",
                     where);
  }
  const Shape positions = options.positions.shape();
  bool fits = positions.rank() >= 1 && positions.rank() < shape.rank();
  for (int axis = -positions.rank(); fits && axis < 0; ++axis) {
    fits = positions.size(axis) == shape.size(axis - 1) || (axis < -1 && positions.size(axis) == 1);
  }
  if (fits) return;
  throw ShapeError("rotary_embedding",
                   "positions " + to_string(positions) + " do not fit x " + to_string(shape) +
                       "; give (T), or the leading axes and T, with 1 to broadcast",
                   where);
}

}  // namespace

Var rotary_embedding(const Var& x, const RotaryOptions& options, Where where) {
  check_rotary(x, options, where);
  const Shape shape = x.shape();
  const int rank = shape.rank();
  const std::int64_t half = shape.size(-1) / 2;
  if (half == 0) return x;
  const Var angles = rotary_angles(x.tape(), options, shape.size(-2), 2 * half, where);
  const DType wide = compute_dtype(x.dtype());
  const Var cosine = cast(cos(angles, where), wide, where);
  const Var sine = cast(sin(angles, where), wide, where);
  Var a, b;
  if (options.interleaved) {
    Shape pairs = shape;
    pairs[rank - 1] = half;
    require_axes(rank + 1, "rotary_embedding", where);
    pairs.push_back(2);
    const Var paired = reshape(x, pairs, where);
    a = select(paired, -1, 0, where);
    b = select(paired, -1, 1, where);
  } else {
    a = slice(x, -1, {.stop = half}, where);
    b = slice(x, -1, {.start = half}, where);
  }
  const Var first = subtract(multiply(a, cosine, where), multiply(b, sine, where), where);
  const Var second = add(multiply(b, cosine, where), multiply(a, sine, where), where);
  const Var turned = options.interleaved
                         ? reshape(stack({first, second}, rank, where), shape, where)
                         : concat({first, second}, -1, where);
  return cast(turned, x.dtype(), where);
}

}  // namespace palimpsest
