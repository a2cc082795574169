#include "checkpoint/graph.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "autodiff/number_text.h"

namespace palimpsest {

namespace {

// The finaliser of splitmix64 (Steele, Lea and Flood, 2014).
std::uint64_t mix(std::uint64_t state, std::uint64_t word) {
  state += word + 0x9e3779b97f4a7c15ull;
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9ull;
  state = (state ^ (state >> 27)) * 0x94d049bb133111ebull;
  return state ^ (state >> 31);
}

bool is_cost(double seconds) { return seconds >= 0 && !std::isinf(seconds); }

/// A cost that is refused, and which would not be.
std::string seconds_text(double seconds) {
  return number_text(seconds) + " seconds; give a finite, non-negative number";
}

}  // namespace

void Graph::set_cost(NodeId node, double seconds) {
  if (!is_cost(seconds)) {
    throw ArgumentError("[graph] node " + describe(node) + " cannot cost " + seconds_text(seconds));
  }
  nodes_[node].cost = seconds;
}

NodeId Graph::add_node(std::span<const ValueId> inputs, std::span<const Output> outputs,
                       Traits traits) {
  const NodeId node = node_count();
  const auto refuse = [&](const std::string& problem) {
    const std::string name = traits.name.empty() ? "" : " (" + traits.name + ")";
    throw ArgumentError("[graph] node " + std::to_string(node) + name + " " + problem);
  };
  if (!is_cost(traits.cost)) refuse("cannot cost " + seconds_text(traits.cost));
  if (traits.workspace < 0) {
    refuse("has a workspace of " + std::to_string(traits.workspace) + " bytes; give 0 or more");
  }
  if (traits.source && !inputs.empty()) refuse("is a source with inputs; give a source no inputs");
  for (const ValueId input : inputs) {
    if (input < value_count()) continue;
    refuse("reads value " + std::to_string(input) +
           ", which does not exist yet; add its producer first");
  }
  Bytes total = total_bytes_;
  const auto add = [&](Bytes bytes) {
    // No sum of live bytes and no end of a layout can then overflow.
    constexpr Bytes most = Bytes{1} << 60;
    if (bytes > most - total)
      refuse("needs more bytes than any memory has; a graph has at most 2⁶⁰");
    total += bytes;
  };
  add(traits.workspace);
  for (const auto& [bytes, view_of, takes_over] : outputs) {
    if (takes_over < -1 || takes_over >= static_cast<int>(inputs.size())) {
      refuse("has an output that takes over input " + std::to_string(takes_over) +
             "; the number of inputs is " + std::to_string(inputs.size()) + ", and -1 means none");
    }
    if (bytes < 0) refuse("has an output of " + std::to_string(bytes) + " bytes; give 0 or more");
    if (view_of < 0 && !traits.source) add(bytes);
    if (view_of >= -1 && view_of < static_cast<int>(inputs.size())) continue;
    refuse("has an output that is a view of input " + std::to_string(view_of) +
           "; the number of inputs is " + std::to_string(inputs.size()) + ", and -1 means none");
  }

  total_bytes_ = total;
  nodes_.push_back({static_cast<std::uint32_t>(inputs_.size()), value_count(), traits.cost,
                    traits.workspace, traits.source, traits.serial, traits.opaque});
  inputs_.insert(inputs_.end(), inputs.begin(), inputs.end());
  origin_.first_nodes.push_back(static_cast<std::uint32_t>(origin_.nodes.size()));
  origin_.nodes.insert(origin_.nodes.end(), traits.tape_nodes.begin(), traits.tape_nodes.end());
  for (const Output& output : outputs) {
    const ValueId value = value_count();
    const bool view = output.view_of >= 0;
    const ValueId root =
        view ? values_[inputs[static_cast<std::size_t>(output.view_of)]].storage : value;
    const ValueId made_in = view ? none : find_made_in(inputs, nodes_.back().first_output, output);
    values_.push_back({node, root, view ? 0 : output.bytes, traits.source, false, false, false,
                       output.takes_over, made_in});
  }
  if (!traits.name.empty() || !names_.empty()) {
    names_.resize(node);
    names_.push_back(std::move(traits.name));
  }
  return node;
}

ValueId Graph::find_made_in(std::span<const ValueId> inputs, ValueId first_output,
                            const Output& output) const {
  if (output.takes_over < 0) return none;
  const ValueId root = storage(inputs[static_cast<std::size_t>(output.takes_over)]);
  if (bytes(root) == 0 || bytes(root) != output.bytes) return none;
  const auto is_there = [&](ValueId input) { return storage(input) == root; };
  if (std::count_if(inputs.begin(), inputs.end(), is_there) > 1) return none;
  for (ValueId other = first_output; other < value_count(); ++other) {
    if (possible_donor(other) == root) return none;
  }
  return root;
}

int Graph::view_of(ValueId value) const {
  const ValueId root = storage(value);
  const std::span<const ValueId> from = inputs(producer(value));
  const auto base = std::find_if(from.begin(), from.end(), [&](ValueId input) {
    return root != value && storage(input) == root;
  });
  return base != from.end() ? static_cast<int>(base - from.begin()) : -1;
}

void Graph::add_target(ValueId value) {
  if (value >= value_count()) {
    throw ArgumentError("[graph] target " + std::to_string(value) +
                        " is not a value; the graph has " + std::to_string(value_count()) +
                        " values, so add its node first");
  }
  if (!values_[value].target) targets_.push_back(value);
  values_[value].target = true;
}

void Graph::set_present(ValueId value) {
  if (value >= value_count()) {
    throw ArgumentError("[graph] value " + std::to_string(value) +
                        " does not exist; the graph has " + std::to_string(value_count()) +
                        " values, so add its node first");
  }
  values_[value].present = !is_source_value(value);
}

void Graph::place_elsewhere(ValueId value) {
  internal_check(storage(value) == value && !is_source_value(value),
                 "a value without its own storage is placed elsewhere");
  values_[value].bytes = 0;
  values_[value].elsewhere = true;
  values_[value].made_in = none;
  for (Value& other : values_) {
    if (other.made_in == value) other.made_in = none;
  }
}

Bytes Graph::metadata_bytes() const {
  constexpr Bytes bytes_of_node = 128;
  constexpr Bytes bytes_of_value = 48;
  return bytes_of_node * node_count() + bytes_of_value * value_count();
}

std::span<const NodeId> Graph::tape_nodes(NodeId node) const {
  const std::size_t first = origin_.first_nodes[node];
  const std::size_t end =
      node + 1 < nodes_.size() ? origin_.first_nodes[node + 1] : origin_.nodes.size();
  return std::span(origin_.nodes).subspan(first, end - first);
}

std::string_view Graph::name(NodeId node) const {
  return node < names_.size() ? std::string_view(names_[node]) : std::string_view();
}

std::string Graph::describe(NodeId node) const {
  const std::string_view name = this->name(node);
  return name.empty() ? "#" + std::to_string(node) : std::string(name);
}

Bytes Graph::resident() const {
  Bytes total = 0;
  for (ValueId value = 0; value < value_count(); ++value) total += source_bytes(value);
  return total;
}

std::vector<NodeId> Graph::needed_nodes() const {
  std::vector<bool> needed(nodes_.size());
  const auto want = [&](ValueId value) {
    if (!values_[value].present && !is_source_value(value)) needed[producer(value)] = true;
  };
  for (const ValueId target : targets_) want(target);
  std::vector<NodeId> result;
  for (NodeId node = node_count(); node-- > 0;) {
    if (!needed[node]) continue;
    result.push_back(node);
    for (const ValueId input : inputs(node)) want(input);
  }
  std::reverse(result.begin(), result.end());
  return result;
}

double Graph::one_pass_cost() const {
  double total = 0;
  for (const NodeId node : needed_nodes()) total += cost(node);
  return total;
}

std::uint64_t Graph::structure_hash() const {
  std::uint64_t hash = mix(nodes_.size(), values_.size());
  for (const Node& node : nodes_) {
    hash = mix(hash, std::uint64_t{node.first_input} << 32 | node.first_output);
    hash = mix(hash, std::bit_cast<std::uint64_t>(node.cost));
    hash = mix(hash, static_cast<std::uint64_t>(node.workspace) << 3 | (node.opaque ? 4 : 0) |
                         (node.serial ? 2 : 0) | (node.source ? 1 : 0));
  }
  for (const ValueId input : inputs_) hash = mix(hash, input);
  for (const Value& value : values_) {
    hash = mix(
        hash, std::uint64_t{value.storage} << 2 | (value.present ? 2 : 0) | (value.target ? 1 : 0));
    hash = mix(hash, static_cast<std::uint64_t>(value.bytes));
    if (value.elsewhere) hash = mix(hash, 1);
    if (value.takes_over >= 0) hash = mix(hash, static_cast<std::uint64_t>(value.takes_over));
  }
  return mix(hash, std::uint64_t{parallel_} << 32 | backward_begins_.value_or(none));
}

std::uint64_t Graph::wiring_hash() const {
  std::uint64_t hash = mix(nodes_.size(), values_.size());
  for (const Node& node : nodes_) {
    hash = mix(hash, std::uint64_t{node.first_input} << 32 | node.first_output);
    hash = mix(hash, node.source ? 1 : 0);
  }
  for (const ValueId input : inputs_) hash = mix(hash, input);
  for (const Value& value : values_) {
    hash = mix(hash, std::uint64_t{value.storage} << 1 | (value.target ? 1 : 0));
  }
  return hash;
}

}  // namespace palimpsest
