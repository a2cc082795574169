#pragma once

#include <functional>

#include "palimpsest.h"

namespace examples {

/// Evaluates `value(y, x)`, a function on the unit square, at the centres of n × n cells. Returns
/// f64 (n, n).
palimpsest::Tensor field(std::int64_t n, const std::function<double(double, double)>& value);

/// A Gaussian hump: 1 at (y0, x0), falling off over a distance of about `radius`.
double hump(double y, double x, double y0, double x0, double radius);

/// The 2-norm of the difference of two f64 tensors.
double distance(const palimpsest::Tensor& a, const palimpsest::Tensor& b);

}  // namespace examples
