#pragma once

#include "strategy/execution/layer_checkpointing/layer_plan.h"

namespace palimpsest {

/// The segments of `dynamic`: of all that heed the configuration, those that take the fewest
/// seconds of forward passes again, and of these those with the lowest peak.
///
/// Exact, by a dynamic programme over the boundaries for every size that the largest segment
/// computed again may have, which keeps all pairs of bytes and seconds that none other betters
/// (Nemhauser and Ullmann, 1969). Their number is small where layers are alike; at worst it doubles
/// with every layer. Throws `BudgetError` naming the fewest bytes that would do.
std::vector<LayerSegment> dynamic_segments(const LayerCheckpointing& checkpointing,
                                           LayerCount count, std::span<const LayerStage> stages);

}  // namespace palimpsest
