#pragma once

#include <vector>

#include "strategy/fusion/groups.h"

namespace palimpsest {

/// Makes groups of the backward part, which begins at `boundary`, make values of the forward part's
/// groups again, tile by tile, instead of reading them: where what it takes to make them is no more
/// bytes than they are, or held for the backward part anyway. The nodes that make them become
/// members of the reading group too.
///
/// `held` marks values that are in memory whatever is read: sources, those that are wanted and
/// those that are present. Groups are looked at from the last to the first, so that what later ones
/// hold is known.
void clone_into_backward(const Tape& tape, const Readings& readings, NodeId boundary,
                         std::vector<bool> held, Units& units);

/// True for a member that another unit makes for memory, and this one again for itself.
inline bool is_clone(const std::vector<NodeId>& members, NodeId member, NodeId boundary) {
  return member < boundary && members.back() >= boundary;
}

}  // namespace palimpsest
