#pragma once

#include <span>
#include <vector>

#include "checkpoint/schedule.h"

namespace palimpsest {

/// A graph with its needed nodes in another order, for planners that walk nodes in graph order.
/// Sources come first; other nodes are left out.
class Permuted {
 public:
  /// `order` holds the needed nodes, each after its inputs. No value may be present at the start.
  Permuted(const Graph& graph, std::span<const NodeId> order);

  const Graph& graph() const { return graph_; }
  /// Translates a schedule of `graph()` into one of the original graph.
  Schedule original(Schedule schedule) const;

 private:
  Graph graph_;
  std::vector<NodeId> nodes_;    // original nodes, by node
  std::vector<ValueId> values_;  // original values, by value
};

}  // namespace palimpsest
