#pragma once

#include <string>
#include <vector>

#include "checkpoint/planners/cuts.h"
#include "checkpoint/schedule.h"

namespace palimpsest {

/// The forward part of a graph as a chain of stages, each with the nodes of the backward part that
/// belong to it.
///
/// `find_cuts` cuts the forward part. The backward part visits the stages from the last one
/// downwards. A backward node belongs to the first stage visited at whose turn all its inputs can
/// be available. A node that waits for nothing belongs to the first stage that reads it. Linear in
/// the graph.
class Stages {
 public:
  /// Throws `ArgumentError` in the name of `planner` for a graph without a backward part.
  Stages(const Graph& graph, const std::string& planner, CutSettings settings);

  const Graph& graph() const { return graph_; }
  std::size_t count() const { return forward_.size(); }
  /// The stage's nodes, in order.
  std::span<const NodeId> forward(std::size_t stage) const { return forward_[stage]; }
  std::span<const NodeId> backward(std::size_t stage) const { return backward_[stage]; }
  /// By node, its stage; `none` for nodes that no target depends on.
  std::uint32_t stage_of(NodeId node) const { return stage_of_[node]; }
  bool is_backward(NodeId node) const { return node >= backward_begins_; }
  /// By root value, whether it is held across cuts.
  const std::vector<bool>& held() const { return held_; }
  /// For stages of the same graph.
  bool operator==(const Stages& other) const {
    return stage_of_ == other.stage_of_ && held_ == other.held_;
  }

 private:
  std::vector<NodeId> find_nodes();
  void share_out_backward(std::span<const NodeId> nodes);
  void keep_order(std::span<const NodeId> nodes);

  const Graph& graph_;
  NodeId backward_begins_ = 0;
  std::vector<std::vector<NodeId>> forward_;
  std::vector<std::vector<NodeId>> backward_;
  std::vector<std::uint32_t> stage_of_;
  std::vector<bool> held_;
};

/// Builds an order of computing from operations on stages. `drop_after_last_use` makes it a
/// schedule.
class StageOrder {
 public:
  explicit StageOrder(const Graph& graph) : graph_(graph), begun_(graph.node_count()) {}

  /// Runs nodes of the graph. The first run of a node is skipped when all its values are present.
  void run(std::span<const NodeId> nodes);
  /// The nodes run, without those that nothing needs.
  std::vector<NodeId> nodes() const;

 private:
  const Graph& graph_;
  std::vector<NodeId> nodes_;
  std::vector<bool> begun_;
};

}  // namespace palimpsest
