#pragma once

#include <span>

#include "checkpoint/engine_planner.h"
#include "checkpoint/pareto_front.h"

namespace palimpsest {

/// The smallest layout among at least one schedule. The most promising ones are laid out with more
/// effort.
Lowest smallest_layout(const Graph& graph, std::span<const Measured> measured);

/// Goes below the smallest layout of `proposed`. It alternates a search for ever lower peaks, from
/// the lowest proposal of each planner, with online eviction, until neither goes lower. Below the
/// resulting size online eviction seldom has a plan.
Lowest find_lowest(const Graph& graph, std::span<const Measured> proposed);

}  // namespace palimpsest
