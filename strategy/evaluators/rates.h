#pragma once

#include <memory>

#include "autodiff/export.h"
#include "strategy/evaluators/measured_machine.h"

namespace palimpsest PALIMPSEST_EXPORT {

class Profile;

/// Rates for predicting run time. They do not influence planning.
struct Rates {
  Machine machine = measured_machine();
  /// Times of earlier runs. They replace the machine's estimates for the work that they contain.
  std::shared_ptr<const Profile> costs = nullptr;
};

}  // namespace palimpsest
