#pragma once

#include <span>

#include "strategy/compile/fusion/lowered.h"

namespace palimpsest {

/// The specification of a lowered graph, checked. `lowered` was made of `tape`, simplified so, for
/// `targets`. Throws `InternalError`, which says what does not hold:
///
/// - Each value of the graph stands for one value of the tape, no two for the same one. It has its
///   bytes, unless it is a view or lies elsewhere.
/// - What a unit reads is made by a unit before it, or is supplied.
/// - A unit makes outputs of the nodes that it runs. Each value that these read is made by one of
///   them, is read by the unit, or is what nodes that only move elements make of such values and of
///   numbers. The unit reads nothing else; where it is no group, first what its node reads.
/// - Each target is there as the value that stands for it, and the graph keeps that to the end.
///
/// Checks of builds with assertions call it for all that is lowered.
void verify(const Lowered& lowered, const Tape& tape, std::span<const ValueId> targets,
            const Simplification& simplification);

}  // namespace palimpsest
