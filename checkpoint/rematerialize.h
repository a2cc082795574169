#pragma once

#include <span>
#include <vector>

#include "autodiff/export.h"
#include "checkpoint/graph.h"
#include "checkpoint/planners.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Finds the nodes that have to run before given values can be read.
class MissingNodes {
 public:
  explicit MissingNodes(const Graph& graph) : graph_(graph), seen_(graph.node_count()) {}

  /// The nodes that make those of `values` that are not `live`, and recursively the nodes that make
  /// their missing inputs, in order. Sources are always live. O(n log n) in the answer. Valid until
  /// the next call.
  std::span<const NodeId> find(std::span<const ValueId> values, const std::vector<bool>& live);

 private:
  const Graph& graph_;
  std::vector<NodeId> nodes_;
  std::vector<std::uint32_t> seen_;  // by node, the last call that visited it
  std::uint32_t call_ = 0;
};

/// An order of computing that drops the storages in `dropped` (by root value) at the end of the
/// forward part, unless a target lies in them. They are made again when the backward part needs
/// them, for itself or to make others. Then they stay, so each is made again only once.
/// `drop_after_last_use` turns the order into a schedule.
std::vector<NodeId> rematerialize(const Graph& graph, const std::vector<bool>& dropped);

/// By root value: the storages made inside one of `segments` that no forward node outside that
/// segment reads.
std::vector<bool> inside(const Graph& graph, std::span<const Segment> segments);

/// The needed nodes before the backward part begins; all of them when the graph has none.
std::vector<NodeId> forward_nodes(const Graph& graph);

/// The needed nodes of the forward part, cut into `count` segments whose sizes differ by at most
/// one node. Fewer segments when there are fewer nodes.
std::vector<Segment> equal_segments(const Graph& graph, std::uint32_t count);

/// `segments` without the last, because its values are needed again at once.
std::span<const Segment> all_but_last(const std::vector<Segment>& segments);

/// The schedule that recomputes `segments`.
Schedule recompute_segments(const Graph& graph, std::span<const Segment> segments);

}  // namespace palimpsest
