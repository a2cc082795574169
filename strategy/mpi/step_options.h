#pragma once

#include <span>
#include <string>
#include <vector>

#include "strategy/mpi/distributed_execution.h"

namespace palimpsest {

/// What all ranks must have in common in a step, but for what they record: a line each.
std::vector<std::string> lines_of(const ExecutionStrategy& strategy,
                                  const DistributedOptions& options, double loss_scale);

std::uint64_t hash_of(std::span<const std::string> lines);

}  // namespace palimpsest
