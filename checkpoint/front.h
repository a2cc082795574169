#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/planner.h"

namespace palimpsest {

/// A proposal with what a simulation says of it.
struct Measured {
  Proposal proposal;
  Bytes peak = 0;   ///< live bytes
  double cost = 0;  ///< seconds
};

/// Simulates the schedule of a proposal. Throws what `simulate` does.
Measured measure(const Graph& graph, Proposal proposal);
/// The same of many; those that name no planner are from `planner` now.
std::vector<Measured> measure(const Graph& graph, std::vector<Proposal> proposals,
                              const std::string& planner);
/// Sorts by cost, then by peak.
void cheapest_first(std::span<Measured> measured);
/// The proposals alone, in the same order.
std::vector<Proposal> proposals_of(std::vector<Measured> measured);

/// The proposals for which there is none of the same planner that costs no more and has a peak
/// lower by more than layouts differ: of each planner all that can be its best for some budget.
/// Planners look at many more than are worth their memory.
class Front {
 public:
  /// Takes a proposal in, and those out that it beats, unless one that is there beats it or has the
  /// same peak and cost.
  void add(Measured measured);

  /// The proposals, in the order in which they came; none are left.
  std::vector<Proposal> take() { return proposals_of(std::exchange(measured_, {})); }

 private:
  std::vector<Measured> measured_;
};

}  // namespace palimpsest
