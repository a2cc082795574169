#pragma once

#include "strategy/execution/choice/record_part.h"

namespace palimpsest {

/// What a part of a batch takes in a mode that computes while it records.
struct DryRun {
  Bytes peak = 0;
  Bytes keep_all_peak = 0;
  double seconds = 0;
  double compute_overhead = 0;
};

/// Goes through such a run without computing: what is recorded lazily is recorded again, node by
/// node, for an evaluator of the mode that has a `DryEngine`. Throws as `Execution`.
DryRun run_dry(const ExecutionStrategy& strategy, const BatchCut& cut, int part,
               const Workload& workload, const Rates& rates);

}  // namespace palimpsest
