#pragma once

#include "strategy/loops/loop_division.h"

namespace palimpsest {

/// The number of states to make ahead for a division of memory. 0 where all states are held, or
/// where reversing a step leaves no thread idle.
std::uint32_t states_ahead(std::span<const LoopGradient* const> gradients,
                           const LoopDivision& division, int threads);

/// Predicted seconds of a loop's derivative without its first sweep, from the programs of its
/// steps.
double reversal_seconds(std::span<const LoopGradient* const> gradients,
                        const LoopDivision& division, int threads);

/// For a loop with a budget of its own: a division that makes states ahead, if that is faster;
/// otherwise `division`.
LoopDivision divided_for_ahead(std::span<const LoopGradient* const> gradients,
                               const LoopDivision& division, int threads);

}  // namespace palimpsest
