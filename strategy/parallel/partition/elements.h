#pragma once

#include <span>
#include <vector>

#include "checkpoint/graph.h"
#include "strategy/parallel/partition/recorded_program.h"

namespace palimpsest {

/// The smallest units of a program between which it can be cut, numbered from 0. An element is a
/// needed node of the forward part that takes time or memory, with the adjoints that belong to it.
/// If the forward part itself differentiates a loop, the loop and all nodes up to the last reader
/// of its states form one element.
class Elements {
 public:
  /// `program` must outlive this object.
  explicit Elements(const RecordedProgram& program);

  /// The graph of the whole program, for one thread, with the program's node ids.
  const Graph& graph() const { return graph_; }
  /// The needed nodes of both parts in order, including free nodes.
  std::span<const NodeId> needed() const { return needed_; }
  std::size_t size() const { return nodes_.size(); }
  /// The first forward node of an element.
  NodeId node(std::size_t element) const { return nodes_[element]; }
  /// The element of a needed node: the last one that begins no later than the node's owner. 0 if
  /// there is none.
  std::size_t of(NodeId node) const;
  /// Seconds by element, adjoints included, on the machine that planners assume.
  std::vector<double> seconds() const;
  /// By element: bytes of forward values that are made before it and read by it or a later element.
  std::vector<Bytes> crossing() const;

 private:
  const RecordedProgram& program_;
  Graph graph_;
  std::vector<NodeId> needed_;
  std::vector<NodeId> nodes_;
};

}  // namespace palimpsest
