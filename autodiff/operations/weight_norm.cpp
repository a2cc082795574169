#include "autodiff/number_text.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/normalization.h"
#include "autodiff/operations/products.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"

namespace palimpsest {
namespace {

Var unit_vector(const Var& x, double epsilon, const Where& where) {
  return divide(x, maximum(norm(x, 2, {}, true, where), epsilon, where), where);
}

}  // namespace

Var weight_norm(const Var& direction, const Var& magnitude, int axis, Where where) {
  const Var both[] = {direction, magnitude};
  common_tape(both, "weight_norm", where);
  require_floating(direction, "weight_norm", where);
  const Shape shape = direction.shape();
  const int kept = shape.wrap(axis, "weight_norm", where);
  Shape sizes = Shape(std::vector<std::int64_t>(static_cast<std::size_t>(shape.rank()), 1));
  sizes[kept] = shape[kept];
  if (magnitude.shape() != Shape{shape[kept]} && magnitude.shape() != sizes) {
    throw ShapeError("weight_norm",
                     "magnitude " + to_string(magnitude.shape()) + " does not fit direction " +
                         to_string(shape) + "; give " + to_string(Shape{shape[kept]}) +
                         ", one number for each position along the axis",
                     where);
  }
  Axes reduced;
  for (int other = 0; other < shape.rank(); ++other) {
    if (other != kept) reduced.push_back(other);
  }
  const Var length =
      reduced.empty() ? abs(direction, where) : norm(direction, 2, reduced, true, where);
  const Var factor = divide(reshape(magnitude, sizes, where), length, where);
  return cast(multiply(direction, factor, where), direction.dtype(), where);
}

SpectralNorm spectral_norm(const Var& weight, const Var& u, const SpectralNormOptions& options,
                           Where where) {
  const Var both[] = {weight, u};
  common_tape(both, "spectral_norm", where);
  require_floating(weight, "spectral_norm", where);
  const Shape shape = weight.shape();
  const int rows = shape.wrap(options.axis, "spectral_norm", where);
  if (shape.elements() == 0 || u.shape() != Shape{shape[rows]} || u.dtype() != weight.dtype()) {
    throw ShapeError("spectral_norm",
                     "u " + to_string(u.type()) + " does not fit weight " +
                         to_string(weight.type()) + "; give " +
                         to_string(ValueType{Shape{shape[rows]}, weight.dtype()}) +
                         " for a weight that is not empty",
                     where);
  }
  if (options.iterations < 0 || !(options.epsilon > 0)) {
    throw ArgumentError("spectral_norm",
                        std::to_string(options.iterations) + " iterations and epsilon " +
                            number_text(options.epsilon) +
                            "; give 0 or more, and a positive number",
                        where);
  }
  Axes order{rows};
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (axis != rows) order.push_back(axis);
  }
  const Var first = rows == 0 ? weight : permute(weight, order, where);
  const Var matrix = reshape(first, Shape{shape[rows], shape.elements() / shape[rows]}, where);
  const Var fixed = stop_gradient(matrix, where);
  const auto right = [&](const Var& left) {
    return unit_vector(matmul(left, fixed, {}, where), options.epsilon, where);
  };
  Var left = stop_gradient(u, where);
  Var v = right(left);
  for (int i = 0; i < options.iterations; ++i) {
    left = unit_vector(matmul(fixed, v, {}, where), options.epsilon, where);
    v = right(left);
  }
  const Var sigma = dot(left, matmul(matrix, v, {}, where), where);
  return {divide(weight, sigma, where), left, sigma};
}

}  // namespace palimpsest
