#pragma once

#include <functional>

#include "examples/support/program_main.h"
#include "palimpsest.h"

namespace examples {

/// The value of a function at a point and its gradient there.
struct ValueAndGradient {
  double value = 0;
  palimpsest::Tensor gradient;
};
/// A smooth function of an f64 tensor.
using Objective = std::function<ValueAndGradient(const palimpsest::Tensor&)>;

/// An objective that binds its argument to `parameter`, runs the program of `Program::gradients`,
/// and returns the loss and its gradient. `runner` must outlive the result.
Objective objective_of(palimpsest::Runner& runner, const palimpsest::Var& parameter);

struct LbfgsOptions {
  int iterations = 50;      ///< maximum number of iterations
  int memory = 8;           ///< number of (step, change of gradient) pairs that are kept
  double first_step = 0.1;  ///< length of the first step, before any curvature is known
};

/// Minimises from `start` by the limited-memory BFGS method (Nocedal, 1980). Each step is halved
/// until it meets Armijo's rule: the function falls by a fraction of the decrease that its slope
/// predicts. Stops early when no such step is found. Calls `watch` with the number of the
/// iteration, the point and the value there.
palimpsest::Tensor minimize_lbfgs(
    const Objective& objective, const palimpsest::Tensor& start, const LbfgsOptions& options = {},
    const std::function<void(int, const palimpsest::Tensor&, double)>& watch = {});

/// Claims that the gradient at a point agrees with the central difference over ±`distance` along
/// it.
Claim check_gradient(const Objective& objective, const palimpsest::Tensor& at, double distance);

}  // namespace examples
