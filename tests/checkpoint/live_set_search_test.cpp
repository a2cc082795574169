#include "checkpoint/planners/live_set_search.h"

#include <algorithm>
#include <cmath>

#include "checkpoint/plan.h"
#include "checkpoint/planners/extra_cost.h"
#include "checkpoint/schedule.h"
#include "tests/catch.h"
#include "tests/checkpoint/graphs.h"

namespace live_set_search_test {

using namespace palimpsest;
using Catch::Matchers::WithinRel;

namespace {

double least_extra(const Graph& graph, Bytes budget) {
  const LiveSets sets(graph);
  LiveSets::Rest rest;
  sets.find_rest(sets.start(), rest);
  return ExtraCost(sets, budget).least(sets.start(), rest);
}

double extra_cost(const Graph& graph, Bytes budget) {
  const LiveSets sets(graph);
  LiveSets::Rest rest;
  sets.find_rest(sets.start(), rest);
  return LiveSetSearch(sets, budget, 1000).find_cheaper(1).value().cost - rest.cost;
}

/// A value of 4 bytes and 3 seconds that is read before and after two nodes with 8 bytes of
/// workspace; also between them when `thrice`.
Graph two_bottlenecks(bool thrice) {
  tests::GraphBuilder b;
  const ValueId value = b.node({b.source()}, 4, 3);
  const ValueId before = b.node({value}, 1);
  const ValueId first = b.node({before}, 1, 1, 8);
  const ValueId between = b.node(thrice ? std::vector{first, value} : std::vector{first}, 1);
  const ValueId second = b.node({between}, 1, 1, 8);
  b.graph.add_target(b.node({second, value}, 1));
  return std::move(b.graph);
}

/// A node with 2000 bytes of workspace, after many small values that are read after it.
Graph many_ways() {
  tests::GraphBuilder b;
  const ValueId source = b.source();
  std::vector<ValueId> small;
  for (Bytes k = 0; k < 40; ++k) small.push_back(b.node({source}, 100 + k));
  const ValueId last = b.node({b.node(small, 1)}, 1, 1, 2000);
  small.push_back(last);
  b.graph.add_target(b.node(small, 1));
  return std::move(b.graph);
}

}  // namespace

TEST_CASE("extra cost: what bottlenecks force adds up where a value is read between them") {
  for (const bool thrice : {false, true}) {
    const Graph graph = two_bottlenecks(thrice);
    CAPTURE(thrice);
    for (const Bytes budget : {9, 10, 11, 12, 13, 14}) {
      CAPTURE(budget);
      // Half a value cannot be dropped, but the bound does not know that.
      const double part = budget < 10 ? -1 : static_cast<double>(14 - budget) / 4;
      const double least = least_extra(graph, budget);
      if (part < 0) {
        CHECK(std::isinf(least));
        continue;
      }
      CHECK_THAT(least, WithinRel((thrice ? 6 : 3) * part, 1e-12));
      CHECK(extra_cost(graph, budget) == (budget == 14 ? 0 : thrice ? 6 : 3));
    }
  }
}

TEST_CASE("live set search: goes on to ever cheaper orders, and to the cheapest") {
  int improved = 0;
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    const Graph graph = tests::random_graph(seed, 5);
    const Bytes most = simulate(graph, drop_after_last_use(graph, graph.needed_nodes())).peak;
    const LiveSets sets(graph);
    const Bytes budget = (sets.least_peak() + most) / 2;
    LiveSetSearch search(sets, budget, 100'000);
    double best = std::numeric_limits<double>::infinity();
    int found = 0;
    for (const double patience : {0.1, 0.1, 0.5, 1.0}) {
      const auto next = search.find_cheaper(patience);
      if (!next) continue;
      CHECK(next->cost < best);
      best = next->cost;
      const Simulation simulation = simulate(graph, drop_after_last_use(graph, next->order));
      CHECK(simulation.peak <= budget);
      CHECK_THAT(simulation.cost, WithinRel(best, 1e-12));
      ++found;
    }
    CHECK_FALSE(search.find_cheaper(1));
    CHECK_FALSE(search.ran_out());
    improved += found > 1 ? 1 : 0;
    const auto at_once = LiveSetSearch(sets, budget, 100'000).find_cheaper(1);
    REQUIRE(at_once.has_value() == (found > 0));
    if (at_once) CHECK_THAT(at_once->cost, WithinRel(best, 1e-12));
  }
  CHECK(improved > 5);
}

TEST_CASE("live set search: below the next budget there is nothing either") {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    const Graph graph = tests::random_graph(seed, 4);
    const LiveSets sets(graph);
    for (Bytes budget = std::max<Bytes>(sets.least_peak() - 100, 0); budget < unlimited;) {
      LiveSetSearch search(sets, budget, 100'000);
      if (search.find_any()) break;
      REQUIRE_FALSE(search.ran_out());
      const Bytes next = search.next_budget();
      REQUIRE(next > budget);
      LiveSetSearch below(sets, next - 1, 100'000);
      CHECK_FALSE(below.find_any());
      CHECK_FALSE(below.ran_out());
      budget = next;
    }
  }
}

TEST_CASE("live set search: gives up where there are too many ways to make room") {
  const Graph graph = many_ways();
  const LiveSets sets(graph);
  LiveSetSearch search(sets, 4790, 1000);
  CHECK_FALSE(search.find_any());
  CHECK(search.ran_out());
}

}  // namespace live_set_search_test
