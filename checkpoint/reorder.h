#pragma once

#include <vector>

#include "checkpoint/graph.h"

namespace palimpsest {

/// An order of the needed nodes, each once, in which fewer bytes are live than in that of the
/// graph: a node whose outputs take more than the inputs it is the last to read waits for its first
/// reader, a node that frees more than it makes runs as soon as its inputs are there. The best of
/// several rounds, by the peak.
std::vector<NodeId> reorder(const Graph& graph);

}  // namespace palimpsest
