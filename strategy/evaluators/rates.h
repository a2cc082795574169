#pragma once

#include <memory>

#include "strategy/evaluators/measured_machine.h"

namespace palimpsest {

class Profile;

/// Rates for predicting how long a run takes. They do not influence planning.
struct Rates {
  Machine machine = measured_machine();
  /// Times of earlier runs. They replace the machine's estimates for all work that they cover.
  std::shared_ptr<const Profile> costs = nullptr;
};

}  // namespace palimpsest
