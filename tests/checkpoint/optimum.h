#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <vector>

#include "checkpoint/graph.h"

namespace palimpsest::tests {

/// The lowest cost of any schedule within `limit` bytes, by searching over the sets of live values;
/// for graphs of a dozen values.
inline std::optional<double> least_cost(const Graph& graph, Bytes limit) {
  using Live = std::uint32_t;
  Live sources = 0;
  Live start = 0;
  Live goal = 0;
  for (ValueId v = 0; v < graph.value_count(); ++v) {
    if (graph.is_source_value(v)) sources |= 1u << v;
    if (graph.is_present(v)) start |= 1u << v;
    if (graph.is_target(v)) goal |= 1u << v;
  }
  const auto bytes_of = [&](Live live) {
    Live roots = 0;
    Bytes bytes = 0;
    for (ValueId v = 0; v < graph.value_count(); ++v) {
      const Live root = 1u << graph.storage(v);
      if ((live >> v & 1) != 0 && (roots & root) == 0) bytes += graph.bytes(graph.storage(v));
      if ((live >> v & 1) != 0) roots |= root;
    }
    return bytes;
  };
  const auto values_in = [&](ValueId root) {
    Live values = 0;
    for (ValueId v = 0; v < graph.value_count(); ++v) {
      if (graph.storage(v) == root) values |= 1u << v;
    }
    return values;
  };
  start |= sources;
  goal |= sources;
  using Entry = std::pair<double, Live>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  std::map<Live, double> best;
  const auto reach = [&](Live live, double cost) {
    const auto [at, fresh] = best.try_emplace(live, cost);
    if (!fresh && at->second <= cost) return;
    at->second = cost;
    open.emplace(cost, live);
  };
  if (bytes_of(start) > limit) return std::nullopt;
  reach(start, 0);
  while (!open.empty()) {
    const auto [cost, live] = open.top();
    open.pop();
    if (cost > best[live]) continue;
    if (live == goal) return cost;
    for (ValueId v = 0; v < graph.value_count(); ++v) {
      if ((live >> v & 1) != 0 && !graph.is_source_value(v)) reach(live & ~(1u << v), cost);
    }
    for (NodeId node = 0; node < graph.node_count(); ++node) {
      if (graph.is_source(node)) continue;
      bool ready = true;
      for (const ValueId input : graph.inputs(node)) ready = ready && (live >> input & 1) != 0;
      Live after = live;
      for (std::uint32_t i = 0; i < graph.output_count(node); ++i) {
        after |= 1u << (graph.first_output(node) + i);
      }
      if (!ready || after == live) continue;
      // Each storage that an output may take over is either given up or not.
      std::vector<ValueId> taken;
      for (std::uint32_t i = 0; i < graph.output_count(node); ++i) {
        const ValueId output = graph.first_output(node) + i;
        const ValueId root = graph.possible_donor(output);
        if (root != none && (live & values_in(output)) == 0) taken.push_back(root);
      }
      for (std::uint32_t choice = 0; choice >> taken.size() == 0; ++choice) {
        Live left = after;
        Bytes bytes = bytes_of(after) + graph.workspace(node);
        for (std::size_t i = 0; i < taken.size(); ++i) {
          if ((choice >> i & 1) == 0) continue;
          left &= ~values_in(taken[i]);
          bytes -= graph.bytes(taken[i]);
        }
        if (bytes <= limit) reach(left, cost + graph.cost(node));
      }
    }
  }
  return std::nullopt;
}

}  // namespace palimpsest::tests
