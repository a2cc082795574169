#pragma once

#include <cstdint>
#include <vector>

#include "palimpsest.h"

namespace palimpsest::benchmarks {

/// Advection and diffusion on a ring, explicit, f64: uᵢ − c (uᵢ − uᵢ₋₁) + d (uᵢ₊₁ − 2 uᵢ + uᵢ₋₁).
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

/// The same by hand, compiled for the processor at hand.
namespace by_hand {

/// One step from `u` to `next`.
void step(const std::vector<double>& u, std::vector<double>& next);

/// From the adjoints of what a step makes to those of what it reads, `u`; returns what it adds to
/// the adjoint of the speed.
double adjoint_step(const std::vector<double>& u, const std::vector<double>& adjoint,
                    std::vector<double>& of_u);

/// Σ u² after so many steps.
double run(std::int64_t steps);

struct Gradient {
  std::vector<double> start;
  double c = 0;
};
/// The gradient of that with `snapshots` states held, the first among them.
Gradient gradient(std::uint32_t steps, std::uint32_t snapshots);

}  // namespace by_hand

}  // namespace palimpsest::benchmarks
