#pragma once

#include <functional>
#include <optional>

#include "checkpoint/machine.h"

namespace palimpsest {

/// Memory and time of a plan within some budget.
struct WithinBudget {
  Bytes peak = 0;
  double near_seconds = 0;  ///< if every node read its inputs from the cache that holds them
  double seconds = 0;       ///< as `seconds_in_caches` says
};

/// The budget, at most `budget`, within which a program is fastest on a machine with caches. It is
/// smaller than `budget` if recomputing values while they are in a near cache is faster than
/// loading them from farther away. `plan` plans within a budget, and returns nothing if no plan
/// fits.
Bytes budget_for_caches(const Machine& machine, Bytes budget,
                        const std::function<std::optional<WithinBudget>(Bytes)>& plan);

bool has_caches(const Machine& machine);

}  // namespace palimpsest
