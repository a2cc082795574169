#include "examples/support/fields.h"

#include <cmath>

namespace examples {

using palimpsest::DType;
using palimpsest::Tensor;

Tensor field(std::int64_t n, const std::function<double(double, double)>& value) {
  const Tensor result({n, n}, DType::f64);
  for (std::int64_t i = 0; double& element : result.data<double>()) {
    const double y = (static_cast<double>(i / n) + 0.5) / static_cast<double>(n);
    const double x = (static_cast<double>(i % n) + 0.5) / static_cast<double>(n);
    element = value(y, x);
    ++i;
  }
  return result;
}

double hump(double y, double x, double y0, double x0, double radius) {
  return std::exp(-((y - y0) * (y - y0) + (x - x0) * (x - x0)) / (radius * radius));
}

double distance(const Tensor& a, const Tensor& b) {
  double squares = 0;
  for (std::size_t i = 0; const double element : a.data<double>()) {
    squares += std::pow(element - b.data<double>()[i++], 2);
  }
  return std::sqrt(squares);
}

}  // namespace examples
