#pragma once

#include <span>
#include <vector>

#include "checkpoint/graph.h"
#include "checkpoint/planners.h"

namespace palimpsest {

/// Finds what has to run before some values can be read.
class MissingNodes {
 public:
  explicit MissingNodes(const Graph& graph) : graph_(graph), seen_(graph.node_count()) {}

  /// The nodes that make those of `values` that are not in `live`, and what these read in turn, in
  /// order. Sources are always live. Linear in the answer, but for sorting it; valid until the next
  /// call.
  std::span<const NodeId> find(std::span<const ValueId> values, const std::vector<bool>& live);

 private:
  const Graph& graph_;
  std::vector<NodeId> nodes_;
  std::vector<std::uint32_t> seen_;  // by node, the last call that met it
  std::uint32_t call_ = 0;
};

/// An order of computing in which the storages of `dropped` (by root value) are given up when the
/// forward part is over, unless a target lies in them, and made again when the backward part needs
/// them, for itself or to make others again: then they stay, so that each is made again once. With
/// `drop_after_last_use` it makes a schedule.
std::vector<NodeId> rematerialize(const Graph& graph, const std::vector<bool>& dropped);

/// The storages made inside one of `segments` that no node of the forward part reads behind it.
std::vector<bool> inside(const Graph& graph, std::span<const Segment> segments);

/// The needed nodes before the backward part begins; all of them when the graph does not say.
std::vector<NodeId> forward_nodes(const Graph& graph);

/// The needed nodes of the forward part, cut into `count` segments that differ by one node at most;
/// fewer when there are fewer nodes.
std::vector<Segment> equal_segments(const Graph& graph, std::uint32_t count);

/// `segments` without the last: what it computes is needed again at once.
std::span<const Segment> all_but_last(const std::vector<Segment>& segments);

/// The schedule that recomputes `segments`.
Schedule recompute_segments(const Graph& graph, std::span<const Segment> segments);

}  // namespace palimpsest
