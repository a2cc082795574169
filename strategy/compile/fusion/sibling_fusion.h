#pragma once

#include <vector>

#include "strategy/compile/fusion/groups.h"

namespace palimpsest {

/// Sibling fusion (as in XLA, Google 2017): two groups that read the same array become one group,
/// which reads it once. The later one belongs to the backward part, from node `boundary` on. The
/// forward and the backward part of a loss often are such groups.
///
/// The earlier group moves to the place of the later one. So nothing between them may read its
/// values, and the later group may read them only element by element. A value that only the earlier
/// group reads must be a number or held, so that no array is in memory for longer.
///
/// `held` marks values that are in memory anyway: sources, targets and present values.
void fuse_siblings(const Tape& tape, const AccessMaps& access_maps, NodeId boundary,
                   const std::vector<bool>& held, Units& units);

}  // namespace palimpsest
