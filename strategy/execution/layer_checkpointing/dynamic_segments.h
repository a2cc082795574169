#pragma once

#include "strategy/execution/layer_checkpointing/layer_plan.h"

namespace palimpsest {

/// The segments of mode `dynamic`. Among all that satisfy the configuration, they take the fewest
/// seconds of repeated forward passes; ties go to the lowest peak.
///
/// Exact: dynamic programming over the boundaries, once for every possible size of the largest
/// recomputed segment. It keeps the Pareto front of bytes and seconds (Nemhauser and Ullmann,
/// 1969). The front is small where layers are alike; in the worst case it doubles with every layer.
/// Throws `BudgetError` naming the fewest bytes that suffice.
std::vector<LayerSegment> dynamic_segments(const LayerCheckpointing& checkpointing,
                                           LayerCount count, std::span<const LayerStage> stages);

}  // namespace palimpsest
