#pragma once

#include <span>
#include <vector>

#include "checkpoint/schedule.h"

namespace palimpsest {

/// A graph with its needed nodes in another order, so that planners that walk nodes in the order of
/// the graph walk them in this one. Sources come first; other nodes are left out.
class Permuted {
 public:
  /// `order` holds the needed nodes, each after what it reads; no value is present at the
  /// start.
  Permuted(const Graph& graph, std::span<const NodeId> order);

  const Graph& graph() const { return graph_; }
  /// The schedule of `graph()` as one of the graph it was made from.
  Schedule original(Schedule schedule) const;

 private:
  Graph graph_;
  std::vector<NodeId> nodes_;    // original ones, by node
  std::vector<ValueId> values_;  // original ones, by value
};

}  // namespace palimpsest
