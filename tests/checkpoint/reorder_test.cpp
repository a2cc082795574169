#include "checkpoint/reorder.h"

#include <algorithm>
#include <set>

#include "checkpoint/permuted.h"
#include "checkpoint/plan.h"
#include "checkpoint/planners.h"
#include "checkpoint/schedule.h"
#include "tests/catch.h"
#include "tests/checkpoint/graphs.h"

namespace reorder_test {

using namespace palimpsest;
using palimpsest::tests::GraphBuilder;

namespace {

Bytes peak_of(const Graph& graph, std::span<const NodeId> order) {
  return simulate(graph, drop_after_last_use(graph, order)).peak;
}

/// The lowest peak over all orders, by dynamic programming over the sets of computed nodes.
Bytes lowest_peak(const Graph& graph) {
  const std::vector<NodeId> nodes = graph.needed_nodes();
  std::vector<std::uint32_t> reads(nodes.size()), readers(graph.value_count());
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    for (const ValueId input : graph.inputs(nodes[k])) {
      readers[input] |= 1u << k;
      const auto producer = std::find(nodes.begin(), nodes.end(), graph.producer(input));
      if (producer != nodes.end()) reads[k] |= 1u << (producer - nodes.begin());
    }
  }
  const auto live_while = [&](std::uint32_t done, std::size_t running) {
    std::set<ValueId> roots;
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      if (k != running && (done >> k & 1) == 0) continue;
      for (std::uint32_t i = 0; i < graph.output_count(nodes[k]); ++i) {
        const ValueId value = graph.first_output(nodes[k]) + i;
        const bool live = k == running || graph.is_target(value) || (readers[value] & ~done) != 0;
        if (live) roots.insert(graph.storage(value));
      }
    }
    Bytes bytes = graph.workspace(nodes[running]);
    for (const ValueId root : roots) bytes += graph.bytes(root);
    return bytes;
  };
  std::vector<Bytes> least(std::size_t{1} << nodes.size(), unlimited);
  least[0] = 0;
  for (std::uint32_t done = 0; done + 1 < least.size(); ++done) {
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      if ((done >> k & 1) != 0 || (reads[k] & ~done) != 0) continue;
      Bytes& next = least[done | 1u << k];
      next = std::min(next, std::max(least[done], live_while(done, k)));
    }
  }
  return least.back();
}

/// `count` large values, all computed before the first one is summed.
Graph breadth_first(int count, Bytes bytes) {
  GraphBuilder b;
  const ValueId x = b.source(8);
  std::vector<ValueId> large;
  for (int k = 0; k < count; ++k) large.push_back(b.node({x}, bytes));
  ValueId sum = b.node({large[0]}, 8);
  for (int k = 1; k < count; ++k)
    sum = b.node({sum, b.node({large[static_cast<std::size_t>(k)]}, 8)}, 8);
  b.graph.add_target(sum);
  return std::move(b.graph);
}

}  // namespace

TEST_CASE("reorder: values wait for their readers") {
  const Graph graph = breadth_first(50, 1000);
  REQUIRE(peak_of(graph, graph.needed_nodes()) > 50'000);
  CHECK(peak_of(graph, reorder(graph)) < 1100);
  const Plan plan = make_plan(graph, *automatic({.moves = 0}), 2000);
  CHECK(plan.simulation.recomputed == 0);
  CHECK(plan.predicted_peak() <= 2000);
}

TEST_CASE("reorder: each needed node once, never above the order recorded, close to the optimum") {
  double found = 0;
  double least = 0;
  double recorded = 0;
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    const Graph graph = tests::random_graph(seed, 6);
    std::vector<NodeId> order = reorder(graph);
    const Bytes peak = peak_of(graph, order);
    const Bytes before = peak_of(graph, graph.needed_nodes());
    CHECK(peak <= before);
    std::sort(order.begin(), order.end());
    CHECK(order == graph.needed_nodes());
    bool present = false;
    for (ValueId value = 0; value < graph.value_count(); ++value)
      present |= graph.is_present(value);
    if (present || order.size() > 13) continue;
    const Bytes lowest = lowest_peak(graph);
    CHECK(peak >= lowest);
    found += static_cast<double>(peak);
    least += static_cast<double>(lowest);
    recorded += static_cast<double>(before);
  }
  CAPTURE(recorded / least);
  CHECK(recorded / least > 1.04);
  CHECK(found / least < 1.01);
}

TEST_CASE("reorder: schedules of a permuted graph are schedules of the graph") {
  int reordered_graphs = 0;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    const Graph graph = tests::random_graph(seed, 20);
    bool present = false;
    for (ValueId value = 0; value < graph.value_count(); ++value)
      present |= graph.is_present(value);
    if (present) continue;
    const std::vector<NodeId> order = reorder(graph);
    reordered_graphs += order != graph.needed_nodes();
    const Permuted permuted(graph, order);
    for (const Proposal& proposal : greedy()->propose(permuted.graph(), unlimited)) {
      const Simulation there = simulate(permuted.graph(), proposal.schedule);
      const Simulation here = simulate(graph, permuted.original(proposal.schedule));
      CHECK(here.peak == there.peak);
      CHECK(here.recomputed == there.recomputed);
      CHECK(here.timeline == there.timeline);
    }
  }
  CHECK(reordered_graphs > 20);
}

}  // namespace reorder_test
