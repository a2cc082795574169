#pragma once

#include <span>
#include <string>
#include <vector>

#include "strategy/mpi/distributed_execution.h"

namespace palimpsest {

/// The settings of a step that must be the same on all ranks, one per line. The recorded program is
/// not among them. `count` was cleared once more than there were steps.
std::vector<std::string> lines_of(const ExecutionStrategy& strategy,
                                  const DistributedOptions& options, double loss_scale,
                                  const Tape& count);

std::uint64_t hash_of(std::span<const std::string> lines);

}  // namespace palimpsest
