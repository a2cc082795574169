#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/planner.h"

namespace palimpsest {

/// A proposal with its simulated peak and cost.
struct Measured {
  std::shared_ptr<const Proposal> proposal;
  Bytes peak = 0;   ///< live bytes
  double cost = 0;  ///< seconds
};

/// Simulates the schedule of a proposal. Throws what `simulate` does.
Measured measure(const Graph& graph, Proposal proposal);
/// Measures many proposals. Attributes those without a planner to `planner`.
std::vector<Measured> measure(const Graph& graph, std::vector<Proposal> proposals,
                              const std::string& planner);
/// Sorts by cost, then by peak.
void cheapest_first(std::span<Measured> measured);
/// The proposals alone, in the same order.
std::vector<Proposal> proposals_of(std::vector<Measured> measured);

/// An approximate Pareto front of peak and cost, for each planner. A proposal is dropped when
/// another one of its planner costs no more and has a peak lower by more than layouts differ. The
/// rest includes each planner's best proposal for every budget. Planners look at many more
/// proposals than are worth their memory.
class ParetoFront {
 public:
  /// Adds a proposal and removes those that it beats. Does nothing when one in the front beats it
  /// or has the same peak and cost.
  void add(Measured measured);

  /// Returns the proposals in order of insertion, and empties the front.
  std::vector<Proposal> take() { return proposals_of(std::exchange(measured_, {})); }

 private:
  std::vector<Measured> measured_;
};

}  // namespace palimpsest
