#include "checkpoint/planners/stages.h"

#include <algorithm>

#include "checkpoint/schedule.h"

namespace palimpsest {

Stages::Stages(const Graph& graph, const std::string& planner, CutSettings settings)
    : graph_(graph),
      backward_begins_(graph.backward_begins().value_or(graph.node_count())),
      stage_of_(graph.node_count(), none) {
  const std::vector<NodeId> nodes = find_nodes();
  if (nodes.empty() || !is_backward(nodes.back())) {
    throw ArgumentError("[" + planner +
                        "] the graph has no backward part; differentiate, or set where it begins");
  }
  const auto forward = static_cast<std::size_t>(
      std::lower_bound(nodes.begin(), nodes.end(), backward_begins_) - nodes.begin());
  Cuts cuts = find_cuts(graph, nodes, forward, settings);
  held_ = std::move(cuts.held);
  cuts.places.push_back(forward);
  std::size_t first = 0;
  for (const std::size_t end : cuts.places) {
    const std::span<const NodeId> stage = std::span(nodes).subspan(first, end - first);
    for (const NodeId node : stage) stage_of_[node] = static_cast<std::uint32_t>(count());
    forward_.emplace_back(stage.begin(), stage.end());
    first = end;
  }
  share_out_backward(std::span(nodes).subspan(forward));
}

/// The nodes that the targets depend on, in order, including those of present values.
std::vector<NodeId> Stages::find_nodes() {
  std::vector<bool> needed(graph_.node_count());
  for (const ValueId target : graph_.targets()) needed[graph_.producer(target)] = true;
  std::vector<NodeId> nodes;
  for (NodeId node = graph_.node_count(); node-- > 0;) {
    if (!needed[node] || graph_.is_source(node)) continue;
    nodes.push_back(node);
    for (const ValueId input : graph_.inputs(node)) needed[graph_.producer(input)] = true;
  }
  std::reverse(nodes.begin(), nodes.end());
  return nodes;
}

void Stages::share_out_backward(std::span<const NodeId> nodes) {
  const auto last = static_cast<std::uint32_t>(count() - 1);
  // The last stage that reads or makes a storage of the forward part.
  std::vector<std::uint32_t> reach(graph_.value_count());
  for (const std::vector<NodeId>& stage : forward_) {
    for (const NodeId node : stage) {
      for (std::uint32_t i = 0; i < graph_.output_count(node); ++i) {
        reach[graph_.storage(graph_.first_output(node) + i)] = stage_of_[node];
      }
      for (const ValueId input : graph_.inputs(node)) {
        reach[graph_.storage(input)] = stage_of_[node];
      }
    }
  }
  for (const NodeId node : nodes) {
    std::uint32_t& turn = stage_of_[node];
    for (const ValueId input : graph_.inputs(node)) {
      const NodeId producer = graph_.producer(input);
      const ValueId root = graph_.storage(input);
      if (is_backward(producer)) {
        turn = std::min(turn, stage_of_[producer]);
      } else if (!graph_.is_source_value(root) && !held_[root]) {
        turn = std::min(turn, reach[root]);
      }
    }
  }
  keep_order(nodes);
  // Nodes that can run at any time run when they are needed.
  std::vector<std::uint32_t> wanted(graph_.node_count());
  backward_.resize(count());
  for (std::size_t k = nodes.size(); k-- > 0;) {
    const NodeId node = nodes[k];
    if (stage_of_[node] == none) stage_of_[node] = wanted[node];
    const std::uint32_t turn = std::min(stage_of_[node], last);
    backward_[turn].push_back(node);
    for (const ValueId input : graph_.inputs(node)) {
      std::uint32_t& stage = wanted[graph_.producer(input)];
      stage = std::max(stage, turn);
    }
  }
  for (std::vector<NodeId>& stage : backward_) std::reverse(stage.begin(), stage.end());
}

/// Delays nodes that could run before nodes recorded earlier. A node that has to wait for much
/// lower stages than those after it does not count: it is out of order itself.
void Stages::keep_order(std::span<const NodeId> nodes) {
  constexpr std::uint32_t near = 4;
  std::vector<std::uint32_t> highest_after(nodes.size() + 1);
  for (std::size_t k = nodes.size(); k-- > 0;) {
    const std::uint32_t turn = stage_of_[nodes[k]];
    highest_after[k] = std::max(highest_after[k + 1], turn == none ? 0 : turn);
  }
  std::uint32_t now = none;
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    std::uint32_t& turn = stage_of_[nodes[k]];
    if (turn == none) continue;
    turn = std::min(turn, now);
    if (highest_after[k + 1] <= turn + near) now = turn;
  }
}

void StageOrder::run(std::span<const NodeId> nodes) {
  for (const NodeId node : nodes) {
    bool over = !begun_[node];
    for (std::uint32_t i = 0; i < graph_.output_count(node); ++i) {
      over = over && graph_.is_present(graph_.first_output(node) + i);
    }
    begun_[node] = true;
    if (!over) nodes_.push_back(node);
  }
}

std::vector<NodeId> StageOrder::nodes() const { return without_useless(graph_, nodes_); }

}  // namespace palimpsest
