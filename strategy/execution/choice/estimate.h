#pragma once

#include "autodiff/export.h"
#include "strategy/execution/choice/workload.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// The estimated memory and time of one step by a strategy.
struct Estimate {
  /// As the report of a step predicts it, for everything that runs at once. Within a budget, steps
  /// may follow other plans, from fast first planning or from later improvement; their peaks differ
  /// but fit. With cached memory, the peak of the first step; later ones take no more.
  Bytes peak = 0;
  Bytes keep_all_peak = 0;      ///< approximately, when nothing is recomputed
  double seconds = 0;           ///< without planning
  double compute_overhead = 0;  ///< as `Plan::compute_overhead`
  int replicas = 1;             ///< run at once
  int micro_batches = 1;        ///< run in sequence
  /// Whether the peak is exactly what the first step predicts. It may be inexact in four cases. In
  /// a mode that computes while it records, a model that looks at values may take more. With cached
  /// memory, later steps may take less. Within a budget, the first steps may follow a
  /// fast plan, which fits the budget too. And graphs that run in pooled memory are not exact.
  bool is_planned = true;
};

/// Estimates one step of a workload with the given rates: the step is recorded and planned, but not
/// run. For an eager or hybrid mode, everything that is done while recording is simulated. Throws
/// as `Execution`, and `BudgetError` where nothing fits.
Estimate estimate(const ExecutionStrategy& strategy, const Workload& workload,
                  const Rates& rates = {}, Where where = Where::current());

/// Estimates running a graph whose costs are seconds on one thread. A hybrid mode counts as lazy.
/// An eager mode counts as a lazy one; without a budget it recomputes nothing. Throws
/// `ArgumentError` for a strategy that records graphs of its own: with a precision, or one that
/// cuts the batch or cuts the program into stages. Throws `BudgetError` where nothing fits.
Estimate estimate(const ExecutionStrategy& strategy, const Graph& graph, const Rates& rates = {});

}  // namespace palimpsest
