#pragma once

#include <optional>
#include <vector>

#include "checkpoint/planner.h"
#include "checkpoint/planners/live_set_search.h"
#include "checkpoint/planners/live_sets.h"

namespace palimpsest {

/// Optima of one small graph over all schedules, in live bytes.
class Optimum {
 public:
  /// Gives up when all requests together would visit more than `most_sets` sets of live values.
  /// Throws `ArgumentError` for too many values (see `LiveSets`).
  Optimum(const Graph& graph, std::size_t most_sets);

  bool gave_up() const { return gave_up_; }

  /// A schedule of the least cost within `limit`. Nothing when there is none or it gave up.
  std::optional<Schedule> cheapest(Bytes limit);
  /// Adds a schedule of the least cost within `budget`. With `laid_out`, while its layout is larger
  /// than the budget, adds others that have fewer live bytes. True when the last one added fits.
  bool propose(Bytes budget, bool laid_out, std::vector<Proposal>& proposals);
  /// A schedule of the least peak or, when it gives up, of the least found. Does not depend on
  /// earlier requests.
  Schedule lowest();
  /// After it gave up: the cheapest schedule found within the limit, if any.
  const std::optional<Schedule>& near() const { return near_; }

 private:
  const Graph& graph_;
  LiveSets sets_;
  std::size_t most_sets_;
  std::size_t left_;  // sets left for `cheapest`
  Bytes at_start_ = 0;
  bool gave_up_ = false;
  std::optional<Schedule> near_;
};

}  // namespace palimpsest
