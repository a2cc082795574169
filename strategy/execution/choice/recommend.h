#pragma once

#include <iosfwd>
#include <optional>

#include "autodiff/export.h"
#include "strategy/execution/choice/estimate.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Which strategies to choose from, and the rates to judge them by.
struct RecommendOptions {
  Bytes memory = 0;  ///< available for everything that runs at once; 0 is what is free now
  int threads = 0;   ///< 0 is one per core
  /// Precisions that are allowed, in addition to the one that the workload is recorded in.
  std::vector<Precision> precisions = {};
  /// The largest number of micro-batches.
  int most_micro_batches = 64;
  Rates rates = {};
};

/// A strategy that was considered.
struct Considered {
  ExecutionStrategy strategy;
  std::optional<Estimate> estimate;  ///< none where it does not fit
  Bytes smallest = 0;                ///< smallest budget, where it does not fit
};

/// The fastest strategy that fits, and what it was chosen from.
struct Recommendation {
  ExecutionStrategy strategy;
  Estimate estimate;
  std::vector<Considered> considered;  ///< fastest first; those that do not fit come last
  std::string reason;                  ///< one line
};

/// The strategy that, by estimates, takes the least time for a workload within the available
/// memory. That memory becomes its budget. In each of the allowed precisions these are considered:
///
/// - All threads within one program, one thread, and, where the batch may be cut, a replica on each
///   thread.
/// - The whole batch and, where it may be cut, micro-batches. With at least twice as many
///   micro-batches as stages, pipelines of two stages and of one stage per thread, at most 16. For
///   values only pipelines make micro-batches.
/// - For the whole batch, two devices. Where nothing must be recomputed also the hybrid and the
///   eager mode; otherwise gradients checkpointed by a fraction or an interval.
///
/// A cut is left out where the model does not allow it, because it looks at values or records
/// parameters of its own. The planner of each strategy decides what to recompute within the budget.
///
/// Among strategies within one percent of the fastest, the simplest wins: the first in this order.
/// A strategy that computes while it records may take more than its estimate. It is chosen only
/// where no other fits.
/// Throws `BudgetError` with the smallest budget that suffices, where none fits; `ArgumentError`
/// for numbers out of range; and what the model throws.
Recommendation recommend(const Workload& workload, const RecommendOptions& options = {},
                         Where where = Where::current());

/// Likewise for a program that is known only as a graph, such as one from a file or from
/// `graph_of(LayerSizes)`. It considers the strategies that neither cut the program nor change its
/// precision. A graph without a backward part (`Graph::backward_begins`) is for inference. Throws
/// `ArgumentError` where precisions are given.
Recommendation recommend(const Graph& graph, const RecommendOptions& options = {});

/// Writes a table of the considered strategies, followed by the reason.
std::ostream& operator<<(std::ostream& stream, const Recommendation& recommendation);

}  // namespace palimpsest
