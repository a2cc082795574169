#pragma once

#include <vector>

#include "checkpoint/graph.h"

namespace palimpsest {

/// `order` without recomputations whose values can be held instead within `level` bytes, those that
/// save most seconds for the bytes and steps they take first. The second half of every heuristic
/// here: the first decides what to give up, this takes back what was not worth it. O(n log n) a
/// round, a few rounds.
std::vector<NodeId> hold_instead(const Graph& graph, std::vector<NodeId> order, Bytes level);

}  // namespace palimpsest
