#pragma once

#include <functional>
#include <optional>

#include "checkpoint/machine.h"

namespace palimpsest {

/// What a plan within some budget takes.
struct WithinBudget {
  Bytes peak = 0;
  double near_seconds = 0;  ///< if all that a node reads came from the cache that holds it
  double seconds = 0;       ///< as `seconds_in_caches` says
};

/// The budget, at most `budget`, within which a program is fastest on a machine with caches: a
/// smaller one than was asked for where computing values again while they are near is faster than
/// bringing them from afar. `plan` plans within a budget, nothing where that does not do.
Bytes budget_for_caches(const Machine& machine, Bytes budget,
                        const std::function<std::optional<WithinBudget>(Bytes)>& plan);

bool has_caches(const Machine& machine);

}  // namespace palimpsest
