#pragma once

#include <optional>

#include "checkpoint/schedule.h"

namespace palimpsest {

/// The result of running a program on an eager tape with a budget (see
/// checkpoint/online_eviction.h).
struct OnlineRun {
  std::size_t steps = 0;  ///< that compute a node, also when there is no schedule
  Bytes peak = 0;         ///< of live bytes
  std::optional<Schedule> schedule;
};

/// Walks the needed nodes as such a tape would compute them, given the last read of each storage.
/// There is no schedule when the budget is too small or more than `most_steps` nodes would run.
OnlineRun run_online(const Graph& graph, Bytes budget, std::size_t most_steps);

}  // namespace palimpsest
