#pragma once

#include "autodiff/operations/functions/activation.h"

namespace palimpsest::functions {

struct HuberLoss {
  static constexpr Text text{"huber_loss",
                             "y = x²/2 if |x| ≤ δ else δ·(|x| - δ/2), dy/dx = x if |x| ≤ δ else ±δ",
                             "square near 0, linear beyond", 4};
  static constexpr bool magnifies = true;
  static const char* problem(const double* delta) {
    return *delta > 0 ? nullptr
                      : "delta is {}; give a positive distance, where the loss becomes linear";
  }
  static auto value(const auto& x, const double* delta) {
    const auto d = *delta;
    const auto distance = abs(x);
    return choose(distance - d, (distance - *delta / 2) * d, x * x * 0.5);
  }
  static auto from_x(const auto& dy, const auto& x, const double* delta) {
    const auto d = *delta;
    return choose(-d - x, dy * -d, choose(x - d, dy * d, dy * x));
  }
};

using Loss = List<HuberLoss>;
template <IsIn<Loss> F>
inline constexpr Place place_of<F>{Family::loss, position<F, Loss>};

/// A function of two variables: logits a and targets b. No cancellation occurs for b = 0 and b = 1.
struct BceWithLogits {
  static constexpr Text text{"bce_with_logits",
                             "y = log(1 + exp(a)) - a·b, ∂y/∂a = sigmoid(a) - b, ∂y/∂b = -a",
                             "binary cross-entropy of logits and targets", 30};
  static constexpr bool magnifies = true;
  static constexpr bool floating = true;
  static auto value(const auto& a, const auto& b) {
    const auto factor = choose(a, 1 - b, b);
    const auto linear = choose(a, a, -a) * factor;  // avoids ∞·0, which is NaN
    return choose(factor, linear, choose(-factor, linear, factor)) + log1p_of_fraction(decay(a));
  }
  template <class V>
  static V da(const V& dy, const V& a, const V& b, const V&) {
    return dy * (sigmoid(a) - b);
  }
  template <class V>
  static V db(const V& dy, const V& a, const V&, const V&) {
    return -(dy * a);
  }
};

}  // namespace palimpsest::functions
