#pragma once

#include "strategy/execution/choice/workload.h"

namespace palimpsest {

/// What a strategy takes for one step.
struct Estimate {
  /// As the report of a step predicts it, of all that runs at once. Within a budget steps may
  /// follow other plans, found in a hurry or later, of another peak that fits. Where memory is
  /// cached, of a step that finds nothing kept.
  Bytes peak = 0;
  Bytes keep_all_peak = 0;      ///< about, recomputing nothing
  double seconds = 0;           ///< once it has been planned
  double compute_overhead = 0;  ///< as `Plan::compute_overhead`
  int replicas = 1;             ///< at once
  int micro_batches = 1;        ///< one after the other
  /// Whether the peak is exact. It need not be in a mode that computes while it records, where a
  /// model that looks at values may take more, in cached memory, where steps take less that find
  /// results kept, and of graphs that run in pooled memory.
  bool is_planned = true;
};

/// What one step of a workload takes by a strategy, by the rates given: recorded and planned, not
/// run. In an eager or hybrid mode all that is done while it is recorded is gone through, without
/// being computed. Throws as `Execution`, `BudgetError` where nothing fits.
Estimate estimate(const ExecutionStrategy& strategy, const Workload& workload,
                  const Rates& rates = {});

/// What running a graph, whose costs are seconds on one thread, takes by a strategy. A hybrid mode
/// is taken for a lazy one, an eager one for a lazy one that, where it has no budget, computes
/// nothing again. Throws `ArgumentError` for one that records graphs of its own: with a precision,
/// or that cuts the batch, or the program into stages; `BudgetError` where nothing fits.
Estimate estimate(const ExecutionStrategy& strategy, const Graph& graph, const Rates& rates = {});

}  // namespace palimpsest
