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
  /// Gives up when more than `most_sets` sets of live values would have to be looked at for all
  /// that is asked. Throws `ArgumentError` for too many values (see `LiveSets`).
  Optimum(const Graph& graph, std::size_t most_sets);

  bool gave_up() const { return gave_up_; }

  /// A schedule of the least cost within `limit`; nothing when there is none or it gave up.
  std::optional<Schedule> cheapest(Bytes limit);
  /// Adds a schedule of the least cost within `budget`. With `laid_out`, as long as its layout
  /// takes more, adds others that have fewer live bytes. True when the last one added fits.
  bool propose(Bytes budget, bool laid_out, std::vector<Proposal>& proposals);
  /// A schedule of the least peak, the same one whatever was asked for before, unless it gave up.
  Schedule lowest();
  /// After it gave up: a schedule within `limit` that may cost more than another, if that is soon
  /// found. Looks at as many sets again.
  std::optional<Schedule> near(Bytes limit);

 private:
  using Found = LiveSetSearch::Found;
  std::optional<Found> look(Bytes limit, double patience, const std::optional<Found>& known = {});

  const Graph& graph_;
  LiveSets sets_;
  std::size_t most_sets_;
  std::size_t left_;
  Bytes at_start_ = 0;
  bool gave_up_ = false;
};

}  // namespace palimpsest
