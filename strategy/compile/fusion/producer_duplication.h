#pragma once

#include <vector>

#include "strategy/compile/fusion/groups.h"

namespace palimpsest {

/// Producer duplication: groups recompute nodes of other groups, tile by tile, instead of reading
/// their results from memory. The duplicated nodes become the reading group's duplicates. There are
/// two cases:
///
/// - Values made by one or two nodes, from inputs that every reader reads anyway.
/// - In the backward part, from node `boundary` on: values that groups of the forward part make.
///   The inputs that must be kept for this may not take more bytes than the values. Groups are
///   considered from last to first, so that it is known what later groups keep.
///
/// `held` marks values that are in memory anyway: sources, targets and present values.
void duplicate_producers(const Tape& tape, const AccessMaps& access_maps, NodeId boundary,
                         const std::vector<bool>& held, Units& units);

}  // namespace palimpsest
