#pragma once

#include <span>

#include "checkpoint/graph.h"

namespace palimpsest {

/// A value that was read while a graph was recorded, when it had so many nodes.
struct OnlineRead {
  NodeId nodes;
  ValueId value;
};

/// A budget of at least `least` within which online eviction (see checkpoint/online_eviction.h)
/// computes all nodes of the graph in order, with the values read in between: the smallest of some
/// tried, about 2 % apart, each carried out without computing anything.
Bytes smallest_online_budget(const Graph& graph, std::span<const OnlineRead> reads, Bytes least);

}  // namespace palimpsest
