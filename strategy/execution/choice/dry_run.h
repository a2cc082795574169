#pragma once

#include "strategy/execution/choice/record_part.h"

namespace palimpsest {

/// Predicted memory and time of a part of a batch, in a mode that computes while it records.
struct DryRun {
  Bytes peak = 0;
  Bytes keep_all_peak = 0;
  double seconds = 0;
  double compute_overhead = 0;
};

/// Simulates such a run without computing. It records lazily, and then records the result again
/// node by node, for an evaluator of the mode with a `DryEngine`. Throws as `Execution`.
DryRun run_dry(const ExecutionStrategy& strategy, const BatchCut& cut, int part,
               const LocatedWorkload& workload, const Rates& rates);

}  // namespace palimpsest
