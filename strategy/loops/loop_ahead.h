#pragma once

#include "strategy/loops/loop_division.h"

namespace palimpsest {

/// How many states to make ahead where so many can be held: none where reversed steps leave no
/// thread idle, or take too little time for another one to be worth calling.
std::uint32_t states_ahead(const LoopGradient& gradient, const LoopDivision& division, int threads);

/// Seconds that a backward part is predicted to save when it makes states ahead.
double seconds_saved_ahead(const LoopGradient& gradient, const LoopDivision& division, int threads);

}  // namespace palimpsest
