#pragma once

#include <algorithm>
#include <cmath>

#include "palimpsest.h"

namespace palimpsest {

/// A wave on a ring of cells.
inline Tensor wave(std::int64_t cells, DType dtype = DType::f64) {
  Tensor u = Tensor::zeros(Shape{cells}, DType::f64);
  for (std::int64_t i = 0; i < cells; ++i) {
    u.data<double>()[static_cast<std::size_t>(i)] = std::sin(0.1 * static_cast<double>(i) + 0.3);
  }
  return u.to(dtype);
}

inline Tensor number(double value, DType dtype = DType::f64) {
  return Tensor::full(Shape{}, value, dtype);
}

inline double largest_difference(const Tensor& a, const Tensor& b) {
  double most = a.type() == b.type() ? 0 : 1e300;
  for (std::size_t i = 0; most < 1e300 && i < a.data<double>().size(); ++i) {
    most = std::max(most, std::abs(a.data<double>()[i] - b.data<double>()[i]));
  }
  return most;
}

/// An explicit step of advection and a nonlinear reaction around a ring.
inline Var ring_step(const Var& u, const Var& speed) {
  return u - speed * (u - roll(u, 1, 0)) + 0.1 * sin(roll(u, -1, 0));
}

}  // namespace palimpsest
