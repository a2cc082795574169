#pragma once

#include "checkpoint/chains/chain.h"
#include "checkpoint/planners/stages.h"

namespace palimpsest {

/// What stages take, as the chain planners see it.
struct StageCosts {
  std::vector<ChainStage> chain;
  /// By stage and record, the stage's backward nodes with those that are run again for them.
  std::vector<std::vector<std::vector<NodeId>>> backward;
};

/// Measures stages. The first record of each saves all that its backward part reads; up to
/// `records` others save less and less, and make the rest again when it is read, first what takes
/// least seconds for its bytes. An estimate: storages that cross several cuts count for each, and
/// what is saved counts until the stage's backward part ends. Linear in the graph, but for what is
/// run again.
StageCosts measure_stages(const Stages& stages, std::uint32_t records);

}  // namespace palimpsest
