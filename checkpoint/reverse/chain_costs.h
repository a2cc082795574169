#pragma once

#include <cstdint>

#include "checkpoint/chains/disk_costs.h"
#include "checkpoint/reverse/reverse.h"

namespace palimpsest {

/// Measured costs of a chain: of its steps, and of states on disk.
struct ChainCosts {
  DiskCosts disk = {};
  double step_seconds = 0;
  std::uint64_t steps_advanced = 0;  ///< to measure them
  Bytes state_bytes = 0;             ///< of the states that were written
};

/// Bytes of the states that are written to measure a disk.
Bytes measured_state_bytes(const ReverseOptions& options, ReverseChain& chain);

/// Measures the disk first, so that a directory that cannot be used is found before the first step.
/// Then advances the state by a few steps and puts it back, also where a step throws. A group takes
/// the largest costs of its processes.
ChainCosts measure_costs(const ReverseOptions& options, ReverseChain& chain);

}  // namespace palimpsest
