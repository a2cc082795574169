#pragma once

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "checkpoint/reverse/reverse.h"

namespace palimpsest::tests {

/// The acoustic wave equation on n × n cells with reflecting edges: p at two times is the state, in
/// f64. The loss is half the sum of the squares of p along one row of cells, over all steps. The
/// gradient is that of the squared velocities of all cells.
struct Wave {
  std::size_t n = 32;
  std::uint64_t steps = 200;
  std::vector<double> velocity = std::vector<double>(n * n, 0.2);  // squared, times (τ/h)²
  std::vector<double> gradient = std::vector<double>(n * n);
  double loss = 0;

  using State = std::vector<double>;

  State start() const {
    State state(2 * n * n);
    for (std::size_t i = 0; i < n * n; ++i) {
      const double y = static_cast<double>(i / n) / static_cast<double>(n) - 0.4;
      const double x = static_cast<double>(i % n) / static_cast<double>(n) - 0.6;
      state[i] = state[n * n + i] = std::exp(-60 * (x * x + y * y));
    }
    return state;
  }

  void advance(State& state) const {
    double* const now = state.data();
    double* const before = now + n * n;
    for (std::size_t i = 0; i < n * n; ++i) {
      before[i] = 2 * now[i] - before[i] + velocity[i] * laplacian(now, i);
    }
    for (std::size_t i = 0; i < n * n; ++i) std::swap(now[i], before[i]);
  }

  void reverse(const State& state, State& adjoint) {
    const std::size_t row = n / 4 * n;
    const State next = adjoint;
    const double* const a = next.data();  // of the new p
    const double* const b = a + n * n;    // of the p that was new before
    State scaled(n * n);
    for (std::size_t i = 0; i < n * n; ++i) {
      scaled[i] = velocity[i] * a[i];
      gradient[i] += a[i] * laplacian(state.data(), i);
    }
    for (std::size_t i = 0; i < n * n; ++i) {
      adjoint[i] = 2 * a[i] + b[i] + laplacian(scaled.data(), i);
      adjoint[n * n + i] = -a[i];
    }
    for (std::size_t i = row; i < row + n; ++i) {
      loss += 0.5 * state[i] * state[i];
      adjoint[i] += state[i];
    }
  }

  ReverseFunctions<State> functions() {
    return {.advance = [this](State& s, std::uint64_t) { advance(s); },
            .reverse = [this](State& s, State& a, std::uint64_t) { reverse(s, a); },
            .seed = [](State& s) { return State(s.size()); },
            .accumulated = {named("loss", loss), named("gradient", gradient)},
            .inputs = {named("velocity", velocity)}};
  }

 private:
  /// Symmetric: what leaves the plate returns.
  double laplacian(const double* p, std::size_t i) const {
    const std::size_t y = i / n;
    const std::size_t x = i % n;
    double sum = 0;
    if (y > 0) sum += p[i - n] - p[i];
    if (y + 1 < n) sum += p[i + n] - p[i];
    if (x > 0) sum += p[i - 1] - p[i];
    if (x + 1 < n) sum += p[i + 1] - p[i];
    return sum;
  }
};

}  // namespace palimpsest::tests
