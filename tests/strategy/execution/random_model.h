#pragma once

#include <algorithm>

#include "tests/strategy/execution/models.h"

namespace palimpsest {

/// A model of one width whose values read arbitrary earlier values. Any node may read a parameter.
/// Has views, slices, constants, random numbers and operations with several outputs.
inline SmallModel random_model(std::uint64_t seed, int nodes) {
  constexpr std::int64_t width = 6;
  std::vector<Tensor> parameters;
  for (std::uint64_t k = 0; k < 3; ++k) {
    parameters.push_back(Tensor::normal({width, width}, k, 0, 0.4, DType::f64));
  }
  const ModelFunction loss = [seed, nodes](Tape&, std::span<const Var> p,
                                           std::span<const Var> batch) {
    std::uint64_t state = seed;
    const auto draw = [&](std::size_t count) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      return static_cast<std::size_t>(state >> 33) % count;
    };
    std::vector<Var> values{batch[0]};
    const auto any = [&] {
      return values[values.size() - 1 - draw(std::min<std::size_t>(values.size(), 5))];
    };
    for (int k = 0; k < nodes; ++k) {
      const Var x = any();
      switch (draw(9)) {
        case 0:
          values.push_back(tanh(x));
          break;
        case 1:
          values.push_back(matmul(x, p[draw(3)]));
          break;
        case 2:
          values.push_back(x * any());
          break;
        case 3:
          values.push_back(x + any());
          break;
        case 4:
          values.push_back(dropout(x, 0.3));
          break;
        case 5:
          values.push_back(sin(reshape(reshape(x, {-1}), x.shape())));
          break;
        case 6: {
          const Var left = slice(x, 1, {.stop = 3});
          const Var right = slice(any(), 1, {.start = 3});
          values.push_back(concat({left, right}, 1));
          break;
        }
        case 7: {
          const std::vector<Var> parts = split(x, {2, 4}, 1);
          values.push_back(concat({exp(-parts[1] * parts[1]), parts[0]}, 1));
          break;
        }
        default:
          values.push_back(values[draw(values.size())] * 0.5);
      }
      values.back() = tanh(values.back());
    }
    Var total = sum(values.back());
    for (int k = 0; k < 2; ++k) total = total + sum(any() * any());
    return total;
  };
  return {"random", parameters, {Tensor::uniform({5, width}, 7, -1, 1, DType::f64)}, loss};
}

}  // namespace palimpsest
