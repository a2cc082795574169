#pragma once

#include "checkpoint/graph.h"

namespace palimpsest {

/// Seconds that no valid schedule of `graph` within `budget` bytes is below, whatever its order: at
/// least those of one pass, exactly those when keeping everything fits, and infinity when it is
/// certain that no schedule fits. The work is bounded: near-linear in the graph's size.
double lower_bound(const Graph& graph, Bytes budget);

/// Bytes that the peak of no valid schedule is below: the most that are live at the start, at the
/// end, or while one node runs.
Bytes peak_lower_bound(const Graph& graph);

}  // namespace palimpsest
