#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "palimpsest.h"

namespace palimpsest {

/// Layers on random data. The loss is a mean or a sum over examples.
struct Model {
  std::vector<Tensor> parameters;
  std::vector<Tensor> batch;
  bool is_sum = false;
  double dropped = 0;
  bool loops = false;  ///< repeats the first layer, as 20 steps of a loop

  Model(DType dtype, std::int64_t examples, std::size_t layers) {
    for (std::size_t k = 0; k < layers; ++k) {
      parameters.push_back(Tensor::uniform({width, width}, 2 * k, -0.4, 0.4, dtype));
      parameters.push_back(Tensor::uniform({width}, 2 * k + 1, -0.1, 0.1, dtype));
    }
    batch = {Tensor::uniform({examples, width}, 101, -1, 1, dtype),
             Tensor::uniform({examples, width}, 102, -1, 1, dtype)};
  }

  Var record(std::span<const Var> p, std::span<const Var> b) const {
    Var y = b[0];
    const auto layer = [&](const Var& x, std::size_t k) {
      return tanh(matmul(x, p[2 * k]) + p[2 * k + 1]);
    };
    for (std::size_t k = 0; k < p.size() / 2; ++k) y = layer(y, k);
    if (dropped > 0) y = dropout(y, dropped);
    if (loops) {
      y = scan(y, 20, [&](const Var& x, const StepNumber&) { return layer(x, 0); });
    }
    const Var squares = sum((y - b[1]) * (y - b[1]), {1});
    return is_sum ? sum(squares) : mean(squares);
  }
  ModelFunction loss() const {
    return [this](Tape&, std::span<const Var> p, std::span<const Var> b) { return record(p, b); };
  }

  static constexpr std::int64_t width = 12;
};

/// A loss and gradients with their own storage.
struct Found {
  double loss = 0;
  std::vector<Tensor> gradients;
  Report report;

  Found() = default;
  explicit Found(const Gradients& made) : loss(made.loss().item()), report(made.report()) {
    for (const Gradients::Entry& entry : made) gradients.push_back(entry.gradient.clone());
  }
};

inline bool same(const Found& a, const Found& b) {
  return a.loss == b.loss && std::equal(a.gradients.begin(), a.gradients.end(), b.gradients.begin(),
                                        b.gradients.end(), same_bits);
}

/// The largest difference between any two elements of the gradients.
inline double distance(const Found& a, const Found& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.gradients.size(); ++i) {
    for (std::int64_t k = 0; k < a.gradients[i].elements(); ++k) {
      const double difference = std::abs(a.gradients[i].at(k) - b.gradients[i].at(k));
      if (!(difference <= most)) most = difference;
    }
  }
  return most;
}

}  // namespace palimpsest
