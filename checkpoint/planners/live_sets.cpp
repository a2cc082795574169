#include "checkpoint/planners/live_sets.h"

#include <algorithm>
#include <bit>

namespace palimpsest {

namespace {

using Set = LiveSets::Set;

Set one(std::uint32_t bit) { return Set{1} << bit; }

/// Nodes that a target depends on, also through values present at the start, which may be dropped.
std::vector<NodeId> nodes_behind_targets(const Graph& graph) {
  std::vector<bool> wanted(graph.node_count());
  for (const ValueId target : graph.targets()) wanted[graph.producer(target)] = true;
  std::vector<NodeId> nodes;
  for (NodeId node = graph.node_count(); node-- > 0;) {
    if (!wanted[node] || graph.is_source(node)) continue;
    nodes.push_back(node);
    for (const ValueId input : graph.inputs(node)) wanted[graph.producer(input)] = true;
  }
  std::reverse(nodes.begin(), nodes.end());
  return nodes;
}

}  // namespace

Bytes LiveSets::Node::taken() const {
  Bytes sum = 0;
  for (const Storage& taking : takings) sum += taking.bytes;
  return sum;
}

bool LiveSets::holds(const Graph& graph) {
  std::size_t values = 0;
  for (const NodeId node : nodes_behind_targets(graph)) values += graph.output_count(node);
  return values <= most_values;
}

LiveSets::LiveSets(const Graph& graph) {
  std::vector<std::uint32_t> bits(graph.value_count(), none);
  std::vector<Storage> storages(graph.value_count());  // by root
  Set read = 0;
  for (const NodeId id : nodes_behind_targets(graph)) {
    Node node{.id = id, .cost = graph.cost(id), .workspace = graph.workspace(id)};
    for (const ValueId input : graph.inputs(id)) {
      if (bits[input] != none) node.reads |= one(bits[input]);
    }
    read |= node.reads;
    node.may_need = node.reads;
    for_each_bit(node.reads,
                 [&](std::uint32_t v) { node.may_need |= nodes_[producers_[v]].may_need; });
    std::uint32_t own = 0;
    for (std::uint32_t i = 0; i < graph.output_count(id); ++i) {
      const ValueId value = graph.first_output(id) + i;
      const auto bit = static_cast<std::uint32_t>(producers_.size());
      if (bit == most_values) {
        throw ArgumentError("[exact] more than " + std::to_string(most_values) +
                            " values contribute to the targets, not counting sources; use another "
                            "planner such as auto, or plan parts of the graph");
      }
      bits[value] = bit;
      producers_.push_back(static_cast<std::uint32_t>(nodes_.size()));
      node.makes |= one(bit);
      storages[graph.storage(value)].values |= one(bit);
      own += graph.storage(value) == value ? 1 : 0;
      if (graph.is_target(value)) targets_ |= one(bit);
      if (graph.is_present(value)) start_ |= one(bit);
    }
    for (std::uint32_t i = 0; i < graph.output_count(id); ++i) {
      const ValueId value = graph.first_output(id) + i;
      storages[value].bytes = graph.bytes(value);
      storages[value].seconds = node.cost / std::max(own, 1u);
    }
    nodes_.push_back(node);
  }

  for (Node& node : nodes_) {
    for (std::uint32_t i = 0; i < graph.output_count(node.id); ++i) {
      const ValueId output = graph.first_output(node.id) + i;
      const ValueId root = graph.possible_donor(output);
      if (root == none) continue;
      const Set views = storages[output].values & ~node.makes;
      node.takings.push_back({storages[root].values | views, graph.bytes(root), 0});
    }
  }

  for (Storage& storage : storages) {
    if (storage.bytes == 0) continue;
    if (std::popcount(storage.values) > 1) {
      shared_.push_back(storage);
    } else {
      const auto bit = static_cast<std::uint32_t>(std::countr_zero(storage.values));
      for (std::size_t byte = 0; byte < 256; ++byte) {
        if ((byte >> bit % 8 & 1) != 0) bytes_of_byte_[bit / 8][byte] += storage.bytes;
      }
      const bool useless = (nodes_[producers_[bit]].makes & (read | start_)) == 0;
      if (useless) held_ |= targets_ & storage.values;
    }
    storages_.push_back(storage);
  }
  for (std::uint32_t k = 0; k < nodes_.size(); ++k) {
    const Node& node = nodes_[k];
    if (node.cost == 0 && node.workspace == 0 && (node.makes & held_) == 0)
      free_nodes_.push_back(k);
  }
  std::stable_sort(storages_.begin(), storages_.end(), [](const Storage& a, const Storage& b) {
    return a.seconds * static_cast<double>(b.bytes) < b.seconds * static_cast<double>(a.bytes);
  });
}

Bytes LiveSets::bytes(Set live) const {
  Bytes total = 0;
  for (std::size_t k = 0; k < bytes_of_byte_.size(); ++k) {
    total += bytes_of_byte_[k][live >> 8 * k & 255];
  }
  for (const Storage& storage : shared_) total += (storage.values & live) != 0 ? storage.bytes : 0;
  return total;
}

Bytes LiveSets::least_peak() const {
  Rest rest;
  find_rest(start_, rest);
  Bytes most = bytes(targets_);
  for (std::uint32_t k = 0; k < rest.count; ++k) {
    const Node& node = nodes_[rest.nodes[k]];
    most = std::max(most, bytes(node.reads | node.makes) + node.workspace - node.taken());
  }
  return most;
}

void LiveSets::find_rest(Set live, Rest& rest) const {
  Need need{0, targets_, targets_, 0};
  rest.count = 0;
  // A node's outputs have higher numbers than everything it depends on.
  for (Set missing = targets_ & ~live; missing != 0;) {
    const std::uint32_t index = producers_[std::bit_width(missing) - 1];
    rest.nodes[rest.count++] = index;
    missing = (missing | (nodes_[index].reads & ~live)) & ~nodes_[index].makes;
    add(nodes_[index], need);
  }
  for_each_bit(targets_ & ~held_ & live,
               [&](std::uint32_t v) { need.useful |= nodes_[producers_[v]].may_need; });
  static_cast<Need&>(rest) = need;
}

LiveSets::Need LiveSets::without(Set dropped, Set live, Need need) const {
  live &= ~dropped;
  for (Set missing = dropped & need.reads & ~need.makes; missing != 0;) {
    const Node& node = nodes_[producers_[std::bit_width(missing) - 1]];
    add(node, need);
    missing = (missing | (node.reads & ~live)) & ~need.makes;
  }
  return need;
}

void LiveSets::add(const Node& node, Need& need) {
  need.makes |= node.makes;
  need.reads |= node.reads;
  need.useful |= node.may_need;
  need.cost += node.cost;
}

}  // namespace palimpsest
