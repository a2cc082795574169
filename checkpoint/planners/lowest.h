#pragma once

#include <span>

#include "checkpoint/front.h"

namespace palimpsest {

/// The smallest layout among the schedules, at least one, with trouble taken over the most
/// promising.
Lowest smallest_layout(const Graph& graph, std::span<const Measured> measured);

/// Goes below the smallest layout of `proposed`, by a search for ever lower peaks from the lowest
/// of each planner and by online eviction, until neither goes lower. Below its size online eviction
/// seldom has a plan.
Lowest find_lowest(const Graph& graph, std::span<const Measured> proposed);

}  // namespace palimpsest
