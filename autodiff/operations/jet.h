#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace palimpsest {

/// A power series Σ cₖ·εᵏ, truncated after εⁿ. Functions of x₀ + ε have their derivatives of order
/// k, divided by k!, as coefficients cₖ. The longer functions are not inlined: series of them would
/// be long, and calls take little of their time.
class Jet {
 public:
  static constexpr std::size_t most = 13;

  explicit Jet(std::size_t order, double value = 0) : order_(order) { c_[0] = value; }
  /// x₀ + ε.
  static Jet variable(std::size_t order, double value) {
    Jet jet(order, value);
    if (order > 0) jet.c_[1] = 1;
    return jet;
  }

  std::size_t order() const { return order_; }
  double& operator[](std::size_t k) { return c_[k]; }
  double operator[](std::size_t k) const { return c_[k]; }
  /// The largest magnitude of a coefficient.
  double size() const {
    double largest = 0;
    for (std::size_t k = 0; k <= order_; ++k) largest = std::max(largest, std::abs(c_[k]));
    return largest;
  }

  friend Jet operator+(Jet a, const Jet& b) {
    for (std::size_t k = 0; k <= a.order_; ++k) a.c_[k] += b.c_[k];
    return a;
  }
  friend Jet operator+(Jet a, double b) {
    a.c_[0] += b;
    return a;
  }
  friend Jet operator*(Jet a, double b) {
    for (std::size_t k = 0; k <= a.order_; ++k) a.c_[k] *= b;
    return a;
  }
  friend Jet operator-(const Jet& a, const Jet& b) { return a + b * -1; }
  [[gnu::noinline]] friend Jet operator*(const Jet& a, const Jet& b) {
    Jet product(a.order_);
    for (std::size_t k = 0; k <= a.order_; ++k) {
      for (std::size_t i = 0; i <= k; ++i) product.c_[k] += a.c_[i] * b.c_[k - i];
    }
    return product;
  }
  [[gnu::noinline]] friend Jet operator/(Jet a, const Jet& b) {
    for (std::size_t k = 0; k <= a.order_; ++k) {
      for (std::size_t i = 1; i <= k; ++i) a.c_[k] -= b.c_[i] * a.c_[k - i];
      a.c_[k] /= b.c_[0];
    }
    return a;
  }
  friend Jet operator/(double a, const Jet& b) { return Jet(b.order_, a) / b; }
  /// e = exp x solves e' = e·x'.
  [[gnu::noinline]] friend Jet exp(const Jet& x) {
    Jet e(x.order_, std::exp(x.c_[0]));
    for (std::size_t k = 1; k <= x.order_; ++k) {
      for (std::size_t i = 1; i <= k; ++i) {
        e.c_[k] += static_cast<double>(i) * x.c_[i] * e.c_[k - i];
      }
      e.c_[k] /= static_cast<double>(k);
    }
    return e;
  }
  /// y = log x solves x·y' = x'.
  [[gnu::noinline]] friend Jet log(const Jet& x) {
    Jet y(x.order_, std::log(x.c_[0]));
    for (std::size_t k = 1; k <= x.order_; ++k) {
      double sum = static_cast<double>(k) * x.c_[k];
      for (std::size_t i = 1; i < k; ++i) sum -= static_cast<double>(i) * y.c_[i] * x.c_[k - i];
      y.c_[k] = sum / (static_cast<double>(k) * x.c_[0]);
    }
    return y;
  }

 private:
  std::size_t order_;
  std::array<double, most> c_{};
};

}  // namespace palimpsest
