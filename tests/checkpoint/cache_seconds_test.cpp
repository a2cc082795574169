#include "checkpoint/cache_seconds.h"

#include "checkpoint/planners.h"
#include "tests/catch.h"

namespace cache_seconds_test {

using namespace palimpsest;
using Catch::Matchers::WithinRel;

namespace {

constexpr Bytes size = 64'000;

/// A chain of nodes and its reversal: reversing node k reads the outputs of k and k − 1.
Graph chain(int length, const Machine& machine) {
  Graph graph;
  const Graph::Output value{.bytes = size};
  const auto add = [&](std::span<const ValueId> inputs) {
    const Cost cost{0, static_cast<double>(size) * static_cast<double>(inputs.size() + 1)};
    const NodeId node = graph.add_node(inputs, {&value, 1}, {.cost = seconds_of(cost, machine)});
    return graph.first_output(node);
  };
  graph.add_node({}, {&value, 1}, {.source = true});
  std::vector<ValueId> made{0};
  for (int k = 0; k < length; ++k) made.push_back(add({&made.back(), 1}));
  ValueId adjoint = made.back();
  for (int k = length; k > 0; --k) {
    const ValueId inputs[] = {made[static_cast<std::size_t>(k - 1)], adjoint};
    adjoint = add(inputs);
  }
  graph.add_target(adjoint);
  return graph;
}

Machine cached(Bytes bytes) {
  Machine machine{.bytes_per_second = 1e9, .seconds_per_node = 0};
  machine.caches[0] = {bytes, 8e9};
  return machine;
}

}  // namespace

TEST_CASE("cache seconds: all at the rate of a cache that holds everything") {
  const Machine machine = cached(1_GiB);
  const Graph graph = chain(50, machine);
  const Plan plan = make_plan(graph, *keep_all());
  // Each part of the arena comes from memory when it is first touched.
  const double from_memory = static_cast<double>(plan.layout.size) * (1 / 1e9 - 1 / 8e9);
  CHECK_THAT(seconds_in_caches(graph, plan, machine),
             WithinRel(plan.simulation.cost + from_memory, 1e-9));
}

TEST_CASE("cache seconds: computing again in a cache beats bringing from memory") {
  const Machine machine = cached(30 * size);
  const Graph graph = chain(200, machine);
  const Plan all = make_plan(graph, *keep_all());
  const Plan some = make_plan(graph, *planner_named("auto"), 28 * size);
  CHECK(some.simulation.cost > all.simulation.cost);
  CHECK(seconds_in_caches(graph, some, machine) < seconds_in_caches(graph, all, machine));
}

TEST_CASE("cache seconds: without caches they are those of the plan") {
  const Graph graph = chain(20, {});
  const Plan plan = make_plan(graph, *keep_all());
  CHECK_THAT(seconds_in_caches(graph, plan, {}), WithinRel(plan.simulation.cost, 1e-12));
}

}  // namespace cache_seconds_test
