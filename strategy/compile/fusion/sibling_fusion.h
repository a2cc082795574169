#pragma once

#include <vector>

#include "strategy/compile/fusion/groups.h"

namespace palimpsest {

/// Sibling fusion (as in XLA, Google 2017): two groups that read the same array element by element
/// become one group, which reads it once. The later one belongs to the backward part, from node
/// `boundary` on. The forward and the backward part of a loss often are such groups.
///
/// The earlier group moves to the place of the later one. So nothing between them may read its
/// values, and the later group may read them only element by element. Groups stay apart if an array
/// would be in memory for longer or could no longer be written over, and if a unit after the later
/// group reads an array that the earlier one makes.
///
/// `kept` marks values that are in memory until the end: sources and targets.
void fuse_siblings(const Tape& tape, const AccessMaps& access_maps, NodeId boundary,
                   const std::vector<bool>& kept, Units& units);

}  // namespace palimpsest
