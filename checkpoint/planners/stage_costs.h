#pragma once

#include "checkpoint/chains/chain.h"
#include "checkpoint/planners/stages.h"

namespace palimpsest {

/// What the stages take, as the chain planners see it: an estimate, since storages that cross
/// several cuts count for each, and memory that is free before a stage ends does not.
std::vector<ChainStage> measure_stages(const Stages& stages);

}  // namespace palimpsest
