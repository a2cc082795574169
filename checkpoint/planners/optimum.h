#pragma once

#include <optional>
#include <vector>

#include "checkpoint/planner.h"
#include "checkpoint/planners/live_sets.h"

namespace palimpsest {

/// Optima of one small graph over all schedules, in live bytes; the best found where there are too
/// many sets of live values to look at.
class Optimum {
 public:
  /// Each search gives up after `most_sets` sets. Throws `ArgumentError` for too many values (see
  /// `LiveSets`).
  Optimum(const Graph& graph, std::size_t most_sets);

  /// True when a search gave up, so that some answer may not be the best.
  bool gave_up() const { return gave_up_; }

  /// A schedule of the least cost within `limit`; nothing when none is found.
  std::optional<Schedule> cheapest(Bytes limit);
  /// Adds a schedule of the least cost within `budget`. With `lay_out`, as long as its layout takes
  /// more, adds others that have fewer live bytes. True when the last one added fits.
  bool propose(Bytes budget, bool lay_out, std::vector<Proposal>& proposals);
  /// A schedule of the least peak; the same one whatever was asked for before.
  Schedule lowest();

 private:
  const Graph& graph_;
  LiveSets sets_;
  std::size_t most_sets_;
  Bytes at_start_ = 0;
  bool gave_up_ = false;
};

}  // namespace palimpsest
