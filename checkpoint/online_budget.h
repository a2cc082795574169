#pragma once

#include <span>
#include <vector>

#include "checkpoint/graph.h"

namespace palimpsest {

/// A read of values, all at once, that happened during recording, when the graph had `nodes` nodes.
struct OnlineRead {
  NodeId nodes;
  std::vector<ValueId> values;
};

/// A budget of at least `least` that suffices for online eviction (see
/// checkpoint/online_eviction.h). Within it, all nodes of the graph can be computed in order, with
/// the given reads in between. It is the smallest of those tried, to within about 2 %. Each trial
/// is a dry run that computes nothing.
Bytes smallest_online_budget(const Graph& graph, std::span<const OnlineRead> reads, Bytes least);

}  // namespace palimpsest
