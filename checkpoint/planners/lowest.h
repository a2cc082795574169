#pragma once

#include <span>

#include "checkpoint/front.h"

namespace palimpsest {

/// How many layouts are worth some tenths of a second each where a smallest budget is named.
constexpr std::size_t worth_trouble = 3;

/// The smallest layout among the schedules, with trouble taken over so many of the most promising.
Lowest smallest_layout(const Graph& graph, std::span<const Measured> measured,
                       std::size_t troubled);

/// Goes below the smallest layout of `proposed`, by a search for ever lower peaks from the lowest
/// of each planner and by online eviction, until neither goes lower. Below its size online eviction
/// has no plan, also when it looks for its own smallest budget.
Lowest find_lowest(const Graph& graph, std::span<const Measured> proposed);

}  // namespace palimpsest
