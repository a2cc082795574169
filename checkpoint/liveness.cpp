#include "checkpoint/schedule.h"

#include <algorithm>

namespace palimpsest {

namespace {

std::vector<bool> targets_of(const Graph& graph) {
  std::vector<bool> needed(graph.value_count());
  for (const ValueId target : graph.targets()) needed[target] = true;
  return needed;
}

}  // namespace

Schedule drop_after_last_use(const Graph& graph, std::span<const NodeId> nodes) {
  std::vector<Step> reversed;
  std::vector<bool> needed = targets_of(graph);  // after the current step
  for (std::size_t k = nodes.size(); k-- > 0;) {
    const NodeId node = nodes[k];
    const std::size_t drops = reversed.size();
    for (std::uint32_t i = 0; i < graph.output_count(node); ++i) {
      const ValueId output = graph.first_output(node) + i;
      if (!needed[output]) reversed.push_back(Step::drop(output));
      needed[output] = false;
    }
    for (const ValueId input : graph.inputs(node)) {
      if (needed[input] || graph.is_source_value(input)) continue;
      needed[input] = true;
      reversed.push_back(Step::drop(input));
    }
    std::reverse(reversed.begin() + static_cast<std::ptrdiff_t>(drops), reversed.end());
    reversed.push_back(Step::compute(node));
  }
  for (ValueId value = graph.value_count(); value-- > 0;) {
    if (graph.is_source_value(value)) continue;
    internal_check(!needed[value] || graph.is_present(value), "a value is read before it is made");
    if (!needed[value] && graph.is_present(value)) reversed.push_back(Step::drop(value));
  }
  return {{reversed.rbegin(), reversed.rend()}};
}

std::vector<NodeId> order_of(const Schedule& schedule) {
  std::vector<NodeId> order;
  for (const Step& step : schedule.steps) {
    if (step.kind == Step::Kind::compute) order.push_back(step.id);
  }
  return order;
}

std::vector<NodeId> without_useless(const Graph& graph, std::span<const NodeId> nodes) {
  std::vector<NodeId> kept;
  std::vector<bool> needed = targets_of(graph);
  for (std::size_t k = nodes.size(); k-- > 0;) {
    const NodeId node = nodes[k];
    bool useful = false;
    for (std::uint32_t i = 0; i < graph.output_count(node); ++i) {
      useful = useful || needed[graph.first_output(node) + i];
    }
    if (!useful) continue;
    kept.push_back(node);
    for (std::uint32_t i = 0; i < graph.output_count(node); ++i) {
      needed[graph.first_output(node) + i] = false;
    }
    for (const ValueId input : graph.inputs(node)) needed[input] = true;
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

}  // namespace palimpsest
