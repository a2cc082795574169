#pragma once

#include <algorithm>
#include <random>

#include "checkpoint/graph.h"
#include "checkpoint/layout.h"

namespace palimpsest::tests {

/// Shorthand for writing graphs by hand: each call appends a node with one output.
struct GraphBuilder {
  Graph graph;

  ValueId source(Bytes bytes = 0) { return add({}, bytes, {.source = true}); }
  ValueId node(std::vector<ValueId> inputs, Bytes bytes, double cost = 1, Bytes workspace = 0) {
    return add(inputs, bytes, {.cost = cost, .workspace = workspace});
  }
  ValueId view(ValueId base) {
    const Graph::Output output{0, 0};
    return graph.first_output(graph.add_node({&base, 1}, {&output, 1}, {}));
  }

 private:
  ValueId add(const std::vector<ValueId>& inputs, Bytes bytes, Graph::Traits traits) {
    const Graph::Output output{bytes, -1};
    return graph.first_output(graph.add_node(inputs, {&output, 1}, std::move(traits)));
  }
};

/// A chain of n equal forward steps and its backward part: b_k reads b_{k+1} and the step's input.
inline Graph chain(std::uint32_t n, Bytes bytes = 64, double cost = 1) {
  GraphBuilder b;
  std::vector<ValueId> values{b.source(bytes)};
  for (std::uint32_t k = 0; k < n; ++k) values.push_back(b.node({values.back()}, bytes, cost));
  ValueId adjoint = values.back();
  b.graph.set_backward_begins(b.graph.node_count());
  for (std::uint32_t k = n; k-- > 0;) adjoint = b.node({adjoint, values[k]}, bytes, cost);
  b.graph.add_target(adjoint);
  return std::move(b.graph);
}

/// A random forward part of `n` nodes, and a backward part that reads it in reverse. Has shared
/// subexpressions, views, several outputs, workspace, several targets, and some present values.
inline Graph random_graph(std::uint32_t seed, std::uint32_t n) {
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t limit) {
    return static_cast<std::uint32_t>(random() % limit);
  };
  Graph graph;
  const bool with_present = below(3) == 0;
  const std::uint32_t sources = 1 + below(3);
  const auto add = [&](std::vector<ValueId> inputs, bool source) {
    std::vector<Graph::Output> outputs;
    const bool view = !inputs.empty() && below(6) == 0;
    const std::uint32_t count = view || source || below(6) > 0 ? 1 : 2 + below(2);
    for (std::uint32_t i = 0; i < count; ++i) {
      outputs.push_back({Bytes{below(20)} * 50, view ? 0 : -1});
    }
    Graph::Traits traits;
    traits.cost = view || source ? 0 : 1 + below(9);
    traits.workspace = !view && !source && below(4) == 0 ? below(1000) : 0;
    traits.source = source;
    return graph.first_output(graph.add_node(inputs, outputs, traits));
  };
  for (std::uint32_t k = 0; k < sources; ++k) add({}, true);
  const auto recent = [&] {
    const std::uint32_t count = graph.value_count();
    return below(4) == 0 ? below(count) : count - 1 - below(std::min(count, 4u));
  };
  for (std::uint32_t k = 0; k < n; ++k) {
    std::vector<ValueId> inputs;
    for (std::uint32_t i = 1 + below(3); i > 0; --i) inputs.push_back(recent());
    add(std::move(inputs), false);
  }
  const ValueId forward = graph.value_count();
  graph.set_backward_begins(graph.node_count());
  for (ValueId value = forward; value-- > sources;) {
    if (below(5) == 0) continue;
    const ValueId before = below(forward);
    add({graph.value_count() - 1, value, before}, false);
    if (below(8) == 0) graph.add_target(graph.value_count() - 1);
  }
  graph.add_target(graph.value_count() - 1);
  if (with_present) {
    for (ValueId value = sources; value < forward; ++value) {
      if (below(5) == 0) graph.set_present(value);
    }
  }
  return graph;
}

/// The same graph with the sizes of storages and workspaces rounded up as in a layout.
inline Graph laid_out(const Graph& graph) {
  Graph result;
  for (NodeId node = 0; node < graph.node_count(); ++node) {
    std::vector<Graph::Output> outputs;
    for (std::uint32_t i = 0; i < graph.output_count(node); ++i) {
      const ValueId value = graph.first_output(node) + i;
      Graph::Output output{palimpsest::laid_out(graph.bytes(value)), -1, graph.takes_over(value)};
      const auto inputs = graph.inputs(node);
      for (std::size_t k = 0; graph.storage(value) != value && k < inputs.size(); ++k) {
        if (graph.storage(inputs[k]) == graph.storage(value)) output.view_of = static_cast<int>(k);
      }
      outputs.push_back(output);
    }
    result.add_node(graph.inputs(node), outputs,
                    {.cost = graph.cost(node),
                     .workspace = palimpsest::laid_out(graph.workspace(node)),
                     .source = graph.is_source(node)});
  }
  for (ValueId value = 0; value < graph.value_count(); ++value) {
    if (graph.is_present(value)) result.set_present(value);
  }
  for (const ValueId target : graph.targets()) result.add_target(target);
  if (graph.backward_begins()) result.set_backward_begins(*graph.backward_begins());
  return result;
}

/// The same graph with outputs that may take over the storage of an input and are as large as it.
/// With `sizes_only`, changes only the sizes.
inline Graph taking_over(const Graph& graph, std::uint32_t seed, bool sizes_only = false) {
  std::mt19937 random(seed);
  Graph result;
  for (NodeId node = 0; node < graph.node_count(); ++node) {
    const auto inputs = graph.inputs(node);
    std::vector<Graph::Output> outputs;
    for (std::uint32_t i = 0; i < graph.output_count(node); ++i) {
      const ValueId value = graph.first_output(node) + i;
      Graph::Output output{graph.bytes(value) + graph.source_bytes(value), graph.view_of(value)};
      if (output.view_of < 0 && !inputs.empty() && random() % 2 == 0) {
        output.takes_over = static_cast<int>(random() % inputs.size());
        const ValueId root = result.storage(inputs[static_cast<std::size_t>(output.takes_over)]);
        output.bytes = result.bytes(root) + result.source_bytes(root);
        if (sizes_only) output.takes_over = -1;
      }
      outputs.push_back(output);
    }
    result.add_node(inputs, outputs,
                    {.cost = graph.cost(node),
                     .workspace = graph.workspace(node),
                     .source = graph.is_source(node)});
  }
  for (ValueId value = 0; value < graph.value_count(); ++value) {
    if (graph.is_present(value)) result.set_present(value);
  }
  for (const ValueId target : graph.targets()) result.add_target(target);
  if (graph.backward_begins()) result.set_backward_begins(*graph.backward_begins());
  return result;
}

}  // namespace palimpsest::tests
