#pragma once

#include <span>
#include <vector>

#include "checkpoint/graph.h"
#include "strategy/parallel/partition/recorded_program.h"

namespace palimpsest {

/// What a program can be cut between: the nodes of its forward part that take time or memory and
/// are needed, in order, each with the adjoints that go with it. A loop that the forward part
/// itself differentiates is one with all up to the last node that reads its states. Numbered from
/// 0.
class Elements {
 public:
  /// Of a program that outlives this.
  explicit Elements(const RecordedProgram& program);

  /// The whole program, for one thread; nodes have the ids that they have there.
  const Graph& graph() const { return graph_; }
  /// Nodes of both parts that are needed, free ones too, in order.
  std::span<const NodeId> needed() const { return needed_; }
  std::size_t size() const { return nodes_.size(); }
  /// The first node of the forward part that belongs to it.
  NodeId node(std::size_t element) const { return nodes_[element]; }
  /// That a needed node goes with: the last one that is no later than its owner. 0 where there is
  /// none.
  std::size_t of(NodeId node) const;
  /// By element, with its adjoints; by the machine that planners go by.
  std::vector<double> seconds() const;
  /// By element: bytes that are made before it, and read by it or behind it, forward.
  std::vector<Bytes> crossing() const;

 private:
  const RecordedProgram& program_;
  Graph graph_;
  std::vector<NodeId> needed_;
  std::vector<NodeId> nodes_;
};

}  // namespace palimpsest
