#include "checkpoint/tape_graph.h"

#include <algorithm>
#include <set>

#include "checkpoint/node_seconds.h"

namespace palimpsest {

namespace {

/// The prefix of `path` that ends with the first match of `scope`; empty when there is none.
std::string_view matching_part(std::string_view path, std::string_view scope) {
  for (std::size_t at = path.find(scope); at != path.npos; at = path.find(scope, at + 1)) {
    const std::size_t end = at + scope.size();
    const bool begins = at == 0 || path[at - 1] == '/';
    const bool ends = end == path.size() || path[end] == '/';
    if (begins && ends) return path.substr(0, end);
  }
  return {};
}

std::string scopes_of(const Tape& tape) {
  constexpr std::size_t most = 20;
  std::set<std::string_view> scopes;
  for (NodeId node = 0; node < tape.node_count() && scopes.size() <= most; ++node) {
    if (!tape.scope_of(node).empty()) scopes.insert(tape.scope_of(node));
  }
  if (scopes.empty()) return "none";
  std::string text;
  for (const std::string_view scope : scopes) {
    if (!text.empty()) text += ", ";
    text += scopes.size() > most && scope == *scopes.rbegin() ? "…" : scope;
  }
  return text;
}

/// Nodes of users' operations that no target needs.
std::vector<bool> unneeded_of_user(const Tape& tape, std::span<const ValueId> targets) {
  std::vector<bool> needed(tape.node_count(), targets.empty());
  for (const ValueId target : targets) {
    if (target < tape.value_count()) needed[tape.producer(target)] = true;
  }
  for (NodeId node = tape.node_count(); node-- > 0;) {
    if (!needed[node]) continue;
    for (const ValueId input : tape.inputs(node)) needed[tape.producer(input)] = true;
  }
  std::vector<bool> unneeded(tape.node_count());
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    unneeded[node] = !needed[node] && tape.operation(node).of_user;
  }
  return unneeded;
}

/// Unless `has_costs`, the node costs nothing, and its operation is not asked.
void append_one(Graph& graph, const Tape& tape, NodeId node, std::span<const ValueId> inputs,
                int threads, const Machine& machine, bool supplied, bool has_costs) {
  const Operation& operation = tape.operation(node);
  const NodeView view(tape.nodes(), node);
  Graph::Traits traits;
  traits.name = tape.name(node).empty() ? operation.name : tape.name(node);
  const bool source = operation.leaf || supplied;
  traits.source = source;
  if (!source && !operation.view && has_costs) {
    traits.cost = seconds_of(view, machine);
    traits.workspace = workspace_of(view, threads);
    traits.serial = threads > 1 && operation.serial;
    traits.opaque = threads > 1 && operation.opaque;
  }
  std::vector<Graph::Output> outputs(tape.output_count(node));
  for (std::uint32_t i = 0; i < outputs.size(); ++i) {
    outputs[i].bytes = tape.bytes(tape.first_output(node) + i);
    if (operation.in_place != nullptr && !source) {
      outputs[i].takes_over = operation.in_place(view, i);
    }
  }
  if (operation.view && !source) outputs[0].view_of = 0;
  traits.tape_nodes = {&node, 1};
  graph.add_node(source ? std::span<const ValueId>() : inputs, outputs, std::move(traits));
}

}  // namespace

void append_node(Graph& graph, const Tape& tape, int threads, const Machine& machine,
                 bool supplied) {
  const NodeId node = graph.node_count();
  append_node(graph, tape, node, tape.inputs(node), threads, machine, supplied);
}

void append_node(Graph& graph, const Tape& tape, NodeId node, std::span<const ValueId> inputs,
                 int threads, const Machine& machine, bool supplied) {
  append_one(graph, tape, node, inputs, threads, machine, supplied, true);
}

Graph graph_of(const Tape& tape, std::span<const ValueId> targets, int threads,
               std::optional<NodeId> backward_begins, const Machine& machine,
               std::span<const NodeId> supplied, bool afresh) {
  Graph graph;
  graph.set_form({});
  // A user's function about a node may throw, which concerns only programs that need the node.
  const std::vector<bool> unasked = unneeded_of_user(tape, targets);
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    append_one(graph, tape, node, tape.inputs(node), threads, machine,
               std::binary_search(supplied.begin(), supplied.end(), node), !unasked[node]);
  }
  for (ValueId value = 0; !afresh && value < tape.value_count(); ++value) {
    if (tape.has_value(value)) graph.set_present(value);
  }
  for (const ValueId target : targets) graph.add_target(target);
  if (threads > 1) graph.set_parallel();
  if (backward_begins) graph.set_backward_begins(*backward_begins);
  return graph;
}

std::vector<Segment> segments_in_scope(const Tape& tape, std::string_view scope) {
  if (scope.empty()) throw ArgumentError("[segments_in_scope] the scope has no name; give a name");
  std::vector<Segment> segments;
  std::string_view path;   // of the previous node
  std::string_view match;  // its prefix that matches
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    const std::string_view here =
        tape.inherits_scope(node) ? std::string_view() : tape.scope_of(node);
    const bool moved = here.data() != path.data();
    const std::string_view part = moved ? matching_part(here, scope) : match;
    if (!part.empty() && part == match) {
      segments.back().last = node;
    } else if (!part.empty()) {
      segments.push_back({node, node});
    }
    path = here;
    match = part;
  }
  if (segments.empty()) {
    throw ArgumentError("[segments_in_scope] nothing was recorded under '" + std::string(scope) +
                        "'; the scopes are: " + scopes_of(tape));
  }
  return segments;
}

}  // namespace palimpsest
