#pragma once

#include "checkpoint/graph.h"

namespace palimpsest {

/// A lower bound, in seconds, on the cost of any valid schedule of `graph` within `budget` bytes,
/// in any order. It is at least the cost of one pass, exactly that when keeping everything fits,
/// and infinity when certainly no schedule fits. The work is bounded: near-linear in the graph's
/// size.
double lower_bound(const Graph& graph, Bytes budget);

/// A lower bound, in bytes, on the peak of any valid schedule.
struct PeakBound {
  Bytes bytes = 0;     ///< the most that are live at the start, at the end, or while one node runs
  NodeId node = none;  ///< that node; none for the start and the end
};
PeakBound peak_bound(const Graph& graph);

}  // namespace palimpsest
