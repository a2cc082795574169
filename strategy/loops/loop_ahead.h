#pragma once

#include "strategy/loops/loop_division.h"

namespace palimpsest {

/// How many states to make ahead where memory is divided like that: none where all states are held,
/// or where a step reversed leaves no other thread idle.
std::uint32_t states_ahead(std::span<const LoopGradient* const> gradients,
                           const LoopDivision& division, int threads);

/// Seconds that a loop's derivative is predicted to take beside its first sweep, by the programs of
/// its steps.
double reversal_seconds(std::span<const LoopGradient* const> gradients,
                        const LoopDivision& division, int threads);

/// A division of the budget that the loop has of its own: the one given, or, where that is
/// faster, one that makes states ahead.
LoopDivision divided_for_ahead(std::span<const LoopGradient* const> gradients,
                               const LoopDivision& division, int threads);

}  // namespace palimpsest
