#pragma once

#include <vector>

#include "checkpoint/graph.h"

namespace palimpsest {

/// `order` without recomputations whose values can be held instead within `level` bytes. It starts
/// with those that save most seconds for the bytes and steps they take. This is the second half of
/// every heuristic here: the first decides what to drop, and this undoes drops that were not worth
/// it. O(n log n) per round, a few rounds.
std::vector<NodeId> hold_instead(const Graph& graph, std::vector<NodeId> order, Bytes level);

}  // namespace palimpsest
