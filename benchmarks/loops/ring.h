#pragma once

#include <cstdint>
#include <vector>

#include "palimpsest.h"

namespace palimpsest::benchmarks {

/// Explicit advection and diffusion on a ring, f64: uᵢ − c (uᵢ − uᵢ₋₁) + d (uᵢ₊₁ − 2 uᵢ + uᵢ₋₁).
struct Ring {
  static constexpr std::int64_t cells = 1'000;
  static constexpr double speed = 0.2;
  static constexpr double diffusion = 0.1;

  explicit Ring(std::int64_t steps);

  Tape tape;
  Var start;
  Var c;
  Var loss;  ///< Σ u² after the last step
};

Tensor ring_start();

/// The same loop written by hand, compiled for this machine's processor.
namespace by_hand {

/// One step from `u` to `next`.
void step(const std::vector<double>& u, std::vector<double>& next);

/// Backpropagates one step: turns the adjoints of its output into those of its input `u`. Returns
/// its contribution to the adjoint of the speed.
double adjoint_step(const std::vector<double>& u, const std::vector<double>& adjoint,
                    std::vector<double>& of_u);

/// Σ u² after `steps` steps.
double run(std::int64_t steps);

struct Gradient {
  std::vector<double> start;
  double c = 0;
};
/// The gradient of `run`, with `snapshots` states held, including the first one.
Gradient gradient(std::uint32_t steps, std::uint32_t snapshots);

}  // namespace by_hand

}  // namespace palimpsest::benchmarks
