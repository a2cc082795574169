#pragma once

#include <vector>

#include "checkpoint/graph.h"

namespace palimpsest {

/// An order of the needed nodes, each once, in which fewer bytes are live than in graph order. A
/// node whose outputs take more bytes than the inputs it is the last to read waits for its first
/// reader. A node that frees more bytes than it makes runs as soon as its inputs are live. Returns
/// the best of several rounds, by peak.
std::vector<NodeId> reorder(const Graph& graph);

}  // namespace palimpsest
