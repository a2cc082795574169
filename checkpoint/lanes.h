#pragma once

#include <vector>

#include "checkpoint/dependencies.h"

namespace palimpsest {

/// Kernels share among threads what takes longer than so many seconds on one.
inline constexpr double shared_from = 20e-6;
/// Handing a step to another thread takes a microsecond or two: shorter steps are not worth it.
inline constexpr double handed_over_from = 5e-6;

/// What a step takes on one thread. Of a node of which nothing is known it is never less than a
/// shared one takes.
double seconds_on_one_thread(const Graph& graph, const Step& step);

/// True for a step that runs on one thread, as far as is known, and is worth handing to another.
bool runs_on_one_lane(const Graph& graph, const Step& step);

/// When each step begins and ends.
struct StepTimes {
  std::vector<double> begin;
  std::vector<double> end;
  double all = 0;  ///< seconds until the last one has ended
};

/// List scheduling (Graham, 1966): whenever one of the `lanes` is free, the first step in the order
/// of the schedule that waits for no other begins. A step that its kernel shares among threads has
/// all the lanes that are free then. Drops take no time. O(n log n) in steps and edges.
StepTimes times_on(const Graph& graph, const Schedule& schedule, const Dependencies& dependencies,
                   int lanes);

}  // namespace palimpsest
