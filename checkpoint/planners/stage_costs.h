#pragma once

#include "checkpoint/chains/chain.h"
#include "checkpoint/planners/stages.h"

namespace palimpsest {

/// Costs of stages, for the chain planners.
struct StageCosts {
  std::vector<ChainStage> chain;
  /// By stage and record: the stage's backward nodes with the nodes recomputed for them.
  std::vector<std::vector<std::vector<NodeId>>> backward;
};

/// Measures stages. The first record of each stage saves everything its backward part reads. Up to
/// `records` others save less and less, and recompute the rest when it is read. The values that are
/// cheapest to recompute for their bytes are dropped first. This is an estimate: storages that
/// cross several cuts count for each, and saved storages count until the stage's backward part
/// ends. Linear in the graph, apart from what is recomputed.
StageCosts measure_stages(const Stages& stages, std::uint32_t records);

}  // namespace palimpsest
