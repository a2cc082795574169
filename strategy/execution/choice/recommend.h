#pragma once

#include <iosfwd>
#include <optional>

#include "strategy/execution/choice/estimate.h"

namespace palimpsest {

/// Among which strategies one is recommended, and by what.
struct RecommendOptions {
  Bytes memory = 0;  ///< available for all that runs at once; 0 is what is free now
  int threads = 0;   ///< 0 is one per core
  /// That results may be computed in, besides the one the workload is recorded in.
  std::vector<Precision> precisions = {};
  /// Most micro-batches.
  int most_micro_batches = 64;
  Rates rates = {};
};

/// A strategy that was considered.
struct Considered {
  ExecutionStrategy strategy;
  std::optional<Estimate> estimate;  ///< none where it does not fit
  Bytes smallest = 0;                ///< budget it needs, where it does not
};

/// The fastest strategy that fits, and what it was chosen from.
struct Recommendation {
  ExecutionStrategy strategy;
  Estimate estimate;
  std::vector<Considered> considered;  ///< the fastest first, at the end those that do not fit
  std::string reason;                  ///< one line
};

/// The strategy by which a workload takes least time within the memory there is, by estimates. It
/// has that memory for its budget. What is considered, in each of the precisions allowed:
///
/// - All threads within a program, one of them and, where the batch may be cut, a replica on each.
/// - The whole batch and, where it may be cut, micro-batches; with twice as many of these as
///   stages, pipelines of two stages and of one on each thread, at most 16. Of values only
///   pipelines make micro-batches.
/// - For the whole batch two devices and, where nothing must be computed again, the hybrid and the
///   eager mode, else gradients checkpointed by a fraction or an interval.
///
/// What the model cannot be cut into, as it looks at values or records parameters of its own, is
/// left out. What is computed again within the budget is each one's planner's business. Of
/// strategies within a hundredth of the fastest it is the simplest: the first in this order. One
/// whose peak is not exact (`Estimate::is_planned`) is taken where no other fits. Throws
/// `BudgetError`, naming the smallest that would do, where none fits, `ArgumentError` for numbers
/// out of range, and what the model throws.
Recommendation recommend(const Workload& workload, const RecommendOptions& options = {});

/// The same for what is known of a program as a graph alone, as one from a file or from
/// `graph_of(LayerSizes)`: among the strategies that neither cut it nor change its precision. A
/// graph without a backward part (`Graph::backward_begins`) is for inference.
/// Throws `ArgumentError` where precisions are given.
Recommendation recommend(const Graph& graph, const RecommendOptions& options = {});

/// A table of what was considered, the reason below it.
std::ostream& operator<<(std::ostream& stream, const Recommendation& recommendation);

}  // namespace palimpsest
