#pragma once

#include <cstddef>

/// The chain of six operations of the suite `native`, (2x + 1)x − relu(x·factor), by hand. Compiled
/// for this processor.
namespace palimpsest::benchmarks::chain {

struct Sums {
  float loss;    ///< of the squares
  float factor;  ///< derivative of the loss
};

/// Computes both sums and, unless `dx` is null, the derivatives by x. `n` is a multiple of 16.
Sums by_hand(const float* x, float* dx, std::size_t n, float factor);

}  // namespace palimpsest::benchmarks::chain
