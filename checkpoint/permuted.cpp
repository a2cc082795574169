#include "checkpoint/permuted.h"

namespace palimpsest {

Permuted::Permuted(const Graph& graph, std::span<const NodeId> order) {
  std::vector<ValueId> moved(graph.value_count(), none);
  std::vector<ValueId> inputs;
  std::vector<Graph::Output> outputs;
  const auto add = [&](NodeId node) {
    inputs.clear();
    outputs.clear();
    for (const ValueId input : graph.inputs(node)) inputs.push_back(moved[input]);
    for (std::uint32_t i = 0; i < graph.output_count(node); ++i) {
      const ValueId value = graph.first_output(node) + i;
      moved[value] = static_cast<ValueId>(values_.size());
      values_.push_back(value);
      outputs.push_back({graph.bytes(value) + graph.source_bytes(value), graph.view_of(value),
                         graph.takes_over(value)});
    }
    nodes_.push_back(node);
    graph_.add_node(inputs, outputs,
                    {graph.cost(node), graph.workspace(node), graph.is_source(node),
                     graph.is_serial(node), graph.is_opaque(node), std::string(graph.name(node))});
  };
  for (NodeId node = 0; node < graph.node_count(); ++node) {
    if (graph.is_source(node)) add(node);
  }
  for (const NodeId node : order) add(node);
  for (const ValueId target : graph.targets()) graph_.add_target(moved[target]);
}

Schedule Permuted::original(Schedule schedule) const {
  for (Step& step : schedule.steps) {
    step.id = step.kind == Step::Kind::compute ? nodes_[step.id] : values_[step.id];
  }
  return schedule;
}

}  // namespace palimpsest
