#pragma once

#include <palimpsest/strategy/training/training.h>
#include "examples/support/program_main.h"
#include "palimpsest.h"

namespace examples {

/// An objective that binds its argument to `parameter`, runs the program of `Program::gradients`,
/// and returns the loss and its gradient. `runner` must outlive the result.
palimpsest::Objective objective_of(palimpsest::Runner& runner, const palimpsest::Var& parameter);

/// Claims that the gradient at an f64 tensor agrees with the central difference over ±`distance`
/// along it.
Claim check_gradient(const palimpsest::Objective& objective, const palimpsest::Tensor& at,
                     double distance);

}  // namespace examples
