#pragma once

#include <vector>

#include "checkpoint/dependencies.h"

namespace palimpsest {

/// Kernels that take longer than so many seconds on one thread share their work among threads.
inline constexpr double shared_from = 20e-6;
/// Handing a step to another thread takes a microsecond or two. It is not worth it for steps
/// shorter than this.
inline constexpr double handed_over_from = 5e-6;

/// Seconds that a step takes on one thread. A node of unknown duration takes at least
/// `shared_from`.
double seconds_on_one_thread(const Graph& graph, const Step& step);

/// True for a step that runs on one thread, as far as is known, and is worth handing to another.
bool runs_on_one_lane(const Graph& graph, const Step& step);

/// When each step begins and ends.
struct StepTimes {
  std::vector<double> begin;
  std::vector<double> end;
  double all = 0;  ///< seconds until the last step has ended
};

/// List scheduling (Graham, 1966). Whenever one of the `lanes` is free, the first ready step in
/// schedule order begins. A step whose kernel shares its work among threads gets all lanes that are
/// free then. Drops take no time. O(n log n) in steps and edges.
StepTimes times_on(const Graph& graph, const Schedule& schedule, const Dependencies& dependencies,
                   int lanes);

}  // namespace palimpsest
