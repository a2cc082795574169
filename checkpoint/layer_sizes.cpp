#include "checkpoint/layer_sizes.h"

#include "autodiff/number_text.h"

namespace palimpsest {

namespace {

void check(const LayerSizes& sizes) {
  if (sizes.layers >= 1 && sizes.backward_part >= 0) return;  // the graph checks the others
  throw ArgumentError(
      "[graph_of] " + std::to_string(sizes.layers) + " layers, with gradients " +
      number_text(sizes.backward_part) +
      " times as long as forward; give one layer or more, and a number of 0 or more");
}

/// Adds a node with one output of so many bytes and returns its value.
ValueId add(Graph& graph, std::vector<ValueId> inputs, Bytes bytes, Graph::Traits traits) {
  const Graph::Output output{.bytes = bytes};
  return graph.first_output(graph.add_node(inputs, {&output, 1}, std::move(traits)));
}

}  // namespace

Graph graph_of(const LayerSizes& sizes) {
  check(sizes);
  Graph graph;
  const auto named = [](const char* what, int layer) {
    return std::string(what) + " " + std::to_string(layer);
  };
  std::vector<ValueId> parameters;
  for (int layer = 0; layer < sizes.layers; ++layer) {
    parameters.push_back(
        add(graph, {}, sizes.parameters, {.source = true, .name = named("parameters", layer)}));
  }
  std::vector<ValueId> states{add(graph, {}, sizes.activations, {.source = true, .name = "batch"})};
  for (int layer = 0; layer < sizes.layers; ++layer) {
    states.push_back(add(graph, {states.back(), parameters[static_cast<std::size_t>(layer)]},
                         sizes.activations,
                         {.cost = sizes.seconds, .name = named("layer", layer)}));
  }
  constexpr Bytes number = 4;
  const ValueId loss = add(graph, {states.back()}, number, {.name = "loss"});
  graph.add_target(loss);
  if (!sizes.training) return graph;

  graph.set_backward_begins(graph.node_count());
  ValueId adjoint = add(graph, {states.back()}, sizes.activations, {.name = "adjoint of the loss"});
  for (int layer = sizes.layers; layer-- > 0;) {
    const auto at = static_cast<std::size_t>(layer);
    const Graph::Output outputs[] = {{.bytes = sizes.activations}, {.bytes = sizes.parameters}};
    const ValueId inputs[] = {adjoint, states[at], parameters[at]};
    const NodeId node = graph.add_node(
        inputs, outputs,
        {.cost = sizes.seconds * sizes.backward_part, .name = named("gradients of layer", layer)});
    adjoint = graph.first_output(node);
    graph.add_target(adjoint + 1);
  }
  return graph;
}

}  // namespace palimpsest
