#pragma once

#include "strategy/choice/workload.h"

namespace palimpsest {

/// What a strategy takes for one step.
struct Estimate {
  /// As the report of a step predicts it, of all that runs at once; within a budget steps may
  /// follow other plans, found in a hurry or later, of another peak that fits. Where the mode is
  /// eager or hybrid, or memory is cached, about: what an eager mode keeps although nothing reads
  /// it again is not counted.
  Bytes peak = 0;
  Bytes keep_all_peak = 0;      ///< about, recomputing nothing
  double seconds = 0;           ///< once it has been planned
  double compute_overhead = 0;  ///< extra work over one forward and one backward
  int replicas = 1;             ///< at once
  int micro_batches = 1;        ///< one after the other
  bool is_planned = true;       ///< false where the peak is not exact
};

/// What one step of a workload takes by a strategy, by the rates given: recorded and planned, not
/// run. A hybrid mode is taken for a lazy one, an eager one for a lazy one without fusion that,
/// where it has no budget, computes nothing again. Throws as `Execution`, `BudgetError` where
/// nothing fits.
Estimate estimate(const ExecutionStrategy& strategy, const Workload& workload,
                  const Rates& rates = {});

/// What running a graph, whose costs are seconds on one thread, takes by a strategy. Throws
/// `ArgumentError` for one that records graphs of its own: with a precision, or that cuts the
/// batch, or the program into stages; `BudgetError` where nothing fits.
Estimate estimate(const ExecutionStrategy& strategy, const Graph& graph, const Rates& rates = {});

}  // namespace palimpsest
