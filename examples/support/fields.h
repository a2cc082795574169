#pragma once

#include <functional>

#include "palimpsest.h"

namespace examples {

/// A function of the unit square's ordinate and abscissa at the middles of n × n cells, f64.
palimpsest::Tensor field(std::int64_t n, const std::function<double(double, double)>& value);

/// Around (y0, x0), where it is 1, falling off within some `radius`.
double hump(double y, double x, double y0, double x0, double radius);

/// The 2-norm of the difference of two f64 tensors.
double distance(const palimpsest::Tensor& a, const palimpsest::Tensor& b);

}  // namespace examples
