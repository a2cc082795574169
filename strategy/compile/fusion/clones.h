#pragma once

#include <vector>

#include "strategy/compile/fusion/groups.h"

namespace palimpsest {

/// Makes groups run nodes of other groups again, tile by tile, instead of reading what those make:
/// the nodes become their clones.
///
/// - What a node or two make of values that every reader reads anyway.
/// - In the backward part, from node `boundary` on, what groups of the forward part make, where
///   that takes no more bytes to be held for the backward part than it is itself. Groups are looked
///   at from the last to the first, so that what later ones hold is known.
///
/// `held` marks values that are in memory whatever is read: sources, those that are wanted and
/// those that are present.
void clone_cheap(const Tape& tape, const Readings& readings, NodeId boundary,
                 const std::vector<bool>& held, Units& units);

}  // namespace palimpsest
