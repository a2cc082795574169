#pragma once

#include <functional>

#include "examples/support/program_main.h"
#include "palimpsest.h"

namespace examples {

/// A function's value at a point, and its gradient there.
struct ValueAndGradient {
  double value = 0;
  palimpsest::Tensor gradient;
};
/// A smooth function of an f64 tensor.
using Objective = std::function<ValueAndGradient(const palimpsest::Tensor&)>;

/// The loss of a `Program::gradients` by what is bound to one parameter. The runner must stay.
Objective objective_of(palimpsest::Runner& runner, const palimpsest::Var& parameter);

struct LbfgsOptions {
  int iterations = 50;      ///< most
  int memory = 8;           ///< pairs of steps and changes of the gradient that are kept
  double first_step = 0.1;  ///< length of the first step, before any curvature is known
};

/// Minimises from `start` by the limited-memory BFGS method (Nocedal, 1980), each step halved until
/// the function falls by a part of what its slope promises (Armijo's rule). Ends early where no
/// such step is found. `watch` is told the number of the iteration, the point and the value there.
palimpsest::Tensor minimize_lbfgs(
    const Objective& objective, const palimpsest::Tensor& start, const LbfgsOptions& options = {},
    const std::function<void(int, const palimpsest::Tensor&, double)>& watch = {});

/// That the gradient at a point is the central difference over ±`distance` along it.
Claim check_gradient(const Objective& objective, const palimpsest::Tensor& at, double distance);

}  // namespace examples
