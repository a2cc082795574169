#pragma once

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "palimpsest.h"

namespace palimpsest {

/// Numbers of both signs and several sizes, with zeros of both signs, infinities and a NaN.
inline Tensor numbers(const Shape& shape, DType dtype, double shift = 0) {
  Tensor made = Tensor::zeros(shape, DType::f64);
  const std::span<double> data = made.data<double>();
  for (std::size_t i = 0; i < data.size(); ++i) {
    const auto x = static_cast<double>(i);
    data[i] = std::sin(1.7 * x + shift) * (i % 5 == 0 ? 30 : 2);
    if (i % 37 == 3) data[i] = 0;
    if (i % 41 == 5) data[i] = -0.0;
  }
  if (is_floating(dtype) && data.size() > 100 && shift == 0) {
    data[50] = std::numeric_limits<double>::infinity();
    data[51] = -std::numeric_limits<double>::infinity();
    data[77] = std::numeric_limits<double>::quiet_NaN();
  }
  return made.to(dtype);
}

/// Equal bits, except that a NaN is equal to every NaN: an operation on two of them may return
/// either.
inline bool same_values(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  const auto equal = [&]<class T>(T) {
    const std::span<const T> x = a.data<T>();
    const std::span<const T> y = b.data<T>();
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (x[i] != x[i] && y[i] != y[i]) continue;
      if (std::memcmp(&x[i], &y[i], sizeof(T)) != 0) return false;
    }
    return true;
  };
  if (a.dtype() == DType::f64) return equal(double{});
  if (a.dtype() == DType::f32) return equal(float{});
  return same_bits(a, b);
}

}  // namespace palimpsest
