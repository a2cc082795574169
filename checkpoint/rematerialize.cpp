#include "checkpoint/rematerialize.h"

#include <algorithm>

#include "checkpoint/schedule.h"

namespace palimpsest {

namespace {

NodeId end_of_forward(const Graph& graph) {
  return graph.backward_begins().value_or(graph.node_count());
}

}  // namespace

std::span<const NodeId> MissingNodes::find(std::span<const ValueId> values,
                                           const std::vector<bool>& live) {
  ++call_;
  nodes_.clear();
  const auto visit = [&](ValueId value) {
    const NodeId node = graph_.producer(value);
    if (live[value] || graph_.is_source(node) || seen_[node] == call_) return;
    seen_[node] = call_;
    nodes_.push_back(node);
  };
  for (const ValueId value : values) visit(value);
  for (std::size_t k = 0; k < nodes_.size(); ++k) {
    for (const ValueId input : graph_.inputs(nodes_[k])) visit(input);
  }
  std::sort(nodes_.begin(), nodes_.end());
  return nodes_;
}

std::vector<NodeId> rematerialize(const Graph& graph, const std::vector<bool>& dropped) {
  const std::vector<NodeId> needed = graph.needed_nodes();
  const NodeId backward = end_of_forward(graph);

  std::vector<bool> targets(graph.value_count());
  for (const ValueId target : graph.targets()) targets[graph.storage(target)] = true;

  std::vector<bool> live(graph.value_count());
  std::vector<NodeId> order;
  const auto compute = [&](NodeId node) {
    order.push_back(node);
    for (std::uint32_t i = 0; i < graph.output_count(node); ++i) {
      live[graph.first_output(node) + i] = true;
    }
  };
  for (ValueId value = 0; value < graph.value_count(); ++value) {
    live[value] = graph.is_present(value);
  }

  MissingNodes missing(graph);
  bool forward = true;
  for (const NodeId node : needed) {
    if (forward && node >= backward) {
      forward = false;
      for (ValueId value = 0; value < graph.value_count(); ++value) {
        const ValueId root = graph.storage(value);
        if (dropped[root] && !targets[root]) live[value] = false;
      }
    }
    for (const NodeId ancestor : missing.find(graph.inputs(node), live)) compute(ancestor);
    compute(node);
  }
  return order;
}

std::vector<bool> inside(const Graph& graph, std::span<const Segment> segments) {
  constexpr std::uint32_t outside = none;
  std::vector<std::uint32_t> segment_of(graph.node_count(), outside);
  for (std::uint32_t s = 0; s < segments.size(); ++s) {
    std::fill(segment_of.begin() + segments[s].first, segment_of.begin() + segments[s].last + 1, s);
  }
  std::vector<bool> result(graph.value_count());
  for (ValueId value = 0; value < graph.value_count(); ++value) {
    result[value] = segment_of[graph.producer(value)] != outside && !graph.is_source_value(value);
  }
  for (const NodeId node : forward_nodes(graph)) {
    for (const ValueId input : graph.inputs(node)) {
      const ValueId root = graph.storage(input);
      if (segment_of[node] != segment_of[graph.producer(root)]) result[root] = false;
    }
  }
  return result;
}

std::vector<NodeId> forward_nodes(const Graph& graph) {
  std::vector<NodeId> nodes = graph.needed_nodes();
  nodes.erase(std::lower_bound(nodes.begin(), nodes.end(), end_of_forward(graph)), nodes.end());
  return nodes;
}

std::span<const Segment> all_but_last(const std::vector<Segment>& segments) {
  return std::span(segments).first(segments.empty() ? 0 : segments.size() - 1);
}

std::vector<Segment> equal_segments(const Graph& graph, std::uint32_t count) {
  const std::vector<NodeId> forward = forward_nodes(graph);
  const std::size_t nodes = forward.size();
  const std::size_t segments = std::min<std::size_t>(count, nodes);
  std::vector<Segment> result;
  for (std::size_t s = 0; s < segments; ++s) {
    result.push_back({forward[s * nodes / segments], forward[(s + 1) * nodes / segments - 1]});
  }
  return result;
}

Schedule recompute_segments(const Graph& graph, std::span<const Segment> segments) {
  return drop_after_last_use(graph, rematerialize(graph, inside(graph, segments)));
}

}  // namespace palimpsest
