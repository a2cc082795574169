#include "checkpoint/roomy_layout.h"

#include <algorithm>

#include "checkpoint/dependencies.h"
#include "checkpoint/lanes.h"
#include "checkpoint/plan.h"
#include "checkpoint/planners.h"
#include "tests/cases.h"
#include "tests/catch.h"
#include "tests/checkpoint/graphs.h"

namespace roomy_layout_test {

using namespace palimpsest;
using palimpsest::tests::GraphBuilder;

/// Branches of two nodes: one takes a millisecond on one thread, the other sums its result.
Graph branches(int count, Bytes bytes, bool parallel = true) {
  GraphBuilder b;
  const ValueId x = b.source(bytes);
  ValueId sum = none;
  for (int k = 0; k < count; ++k) {
    const Graph::Output output{bytes};
    const NodeId work = b.graph.add_node({&x, 1}, {&output, 1}, {.cost = 1e-3, .opaque = parallel});
    const ValueId one = b.node({b.graph.first_output(work)}, 8, 1e-6);
    sum = sum == none ? one : b.node({sum, one}, 8, 1e-6);
  }
  b.graph.add_target(sum);
  if (parallel) b.graph.set_parallel();
  return std::move(b.graph);
}

double seconds_on(const Graph& graph, const Plan& plan, int lanes) {
  const Dependencies dependencies(graph, plan.schedule, plan.layout);
  return times_on(graph, plan.schedule, dependencies, lanes).all;
}

TEST_CASE("lanes: steps begin when a lane is free and what they wait for has ended") {
  const Graph graph = branches(4, 64);
  const Plan plan = make_plan(graph, *keep_all());
  CHECK_THAT(seconds_on(graph, plan, 1), Catch::Matchers::WithinRel(4e-3 + 7e-6, 1e-9));
  CHECK_THAT(seconds_on(graph, plan, 2), Catch::Matchers::WithinRel(2e-3 + 5e-6, 1e-2));
  CHECK_THAT(seconds_on(graph, plan, 4), Catch::Matchers::WithinRel(1e-3 + 5e-6, 1e-2));
  // A kernel that is split over threads uses all free lanes.
  GraphBuilder b;
  const ValueId first = b.node({b.source(64)}, 64, 1e-3);
  b.graph.add_target(b.node({first}, 64, 1e-3));
  CHECK_THAT(seconds_on(b.graph, make_plan(b.graph, *keep_all()), 4),
             Catch::Matchers::WithinRel(5e-4, 1e-9));
}

TEST_CASE("independent branches do not wait for reused memory where little is enough") {
  const Graph graph = branches(4, 4'000);
  const Plan plan = make_plan(graph, *keep_all());
  const Dependencies dependencies(graph, plan.schedule, plan.layout);
  int roots = 0;
  for (std::uint32_t step = 0; step < dependencies.step_count(); ++step) {
    const Step& action = plan.schedule.steps[step];
    const bool is_work = action.kind == Step::Kind::compute && graph.is_opaque(action.id);
    if (is_work && dependencies.predecessor_count(step) == 0) ++roots;
  }
  CHECK(roots == 4);
  CHECK(plan.predicted_peak() <= with_room(graph, plan.keep_all_peak));
  // On one thread more memory gains nothing.
  const Graph alone = branches(4, 4'000, false);
  CHECK(make_plan(alone, *keep_all()).predicted_peak() == plan.keep_all_peak);
}

TEST_CASE("without a budget the peak grows by a tenth at most where values are large") {
  for (const Bytes bytes : {Bytes{1} << 24, Bytes{1} << 30}) {
    const Graph graph = branches(4, bytes);
    const Plan plan = make_plan(graph, *keep_all());
    CHECK(plan.predicted_peak() == plan.keep_all_peak);  // a second buffer would exceed a tenth
  }
  // Neither do graphs of library operations, however small.
  for (int seed = 0; seed < cases(40); ++seed) {
    Graph graph = tests::random_graph(static_cast<std::uint32_t>(seed), 40);
    for (NodeId node = 0; node < graph.node_count(); ++node) {
      if (graph.cost(node) > 0) graph.set_cost(node, 1e-5);
    }
    graph.set_parallel();
    const Plan plan = make_plan(graph, *keep_all());
    CHECK(plan.predicted_peak() <= plan.keep_all_peak + plan.keep_all_peak / 10);
  }
  // Next to a large value, the tenth has room for all branches.
  Graph graph = branches(4, 1 << 22);
  const Graph::Output large{Bytes{1} << 28};
  const ValueId x = 0;
  const NodeId node = graph.add_node({&x, 1}, {&large, 1}, {.cost = 1e-6});
  graph.add_target(graph.first_output(node));
  const Plan plan = make_plan(graph, *keep_all());
  CHECK(plan.predicted_peak() > plan.keep_all_peak);
  CHECK(plan.predicted_peak() <= plan.keep_all_peak + plan.keep_all_peak / 10);
  CHECK(seconds_on(graph, plan, 4) < 1.1e-3);
}

TEST_CASE("within a budget bytes that are left serve branches, and no more") {
  constexpr Bytes bytes = 4'096;
  const Graph graph = branches(4, bytes);
  const Bytes packed = make_plan(branches(4, bytes, false), *keep_all()).predicted_peak();
  double before = 1;
  for (int more = 0; more <= 3; ++more) {
    const Bytes budget = packed + more * (bytes + 256);  // also room for results of branches
    const Plan plan = make_plan(graph, *automatic(), budget);
    CHECK(plan.predicted_peak() <= budget);
    const double seconds = seconds_on(graph, plan, 4);
    CHECK(seconds <= 1.01 * before);
    before = seconds;
  }
  CHECK(before < 1.1e-3);
}

TEST_CASE("a fast plan gets a roomy layout where that may pay in one run") {
  const auto shorter_in_full = [](double cost) {
    int count = 0;
    for (std::uint32_t seed = 0; seed < 10; ++seed) {
      Graph graph = tests::random_graph(seed, 40);
      for (NodeId node = 0; node < graph.node_count(); ++node) {
        if (graph.cost(node) > 0) graph.set_cost(node, cost);
      }
      graph.set_parallel();
      const Bytes budget = make_plan(graph, *keep_all()).keep_all_peak * 3 / 4;
      const auto fast = find_plan(graph, *automatic({.moves = 0}), budget);
      const Plan full = make_plan(graph, *automatic({.moves = 0}), budget);
      if (!fast || !(fast->schedule == full.schedule)) continue;
      count += seconds_on(graph, full, 8) < 0.99 * seconds_on(graph, *fast, 8);
    }
    return count;
  };
  CHECK(shorter_in_full(1e-6) >= 3);
  CHECK(shorter_in_full(1e-4) == 0);
}

TEST_CASE("an output is made beside what another branch still reads") {
  GraphBuilder b;
  const ValueId x = b.source(4'096);
  const Graph::Output plain{4'096};
  const Graph::Output taker{4'096, -1, 0};
  const ValueId a = b.node({x}, 4'096, 1e-6);
  const auto add = [&](ValueId input, const Graph::Output& output) {
    return b.graph.first_output(
        b.graph.add_node({&input, 1}, {&output, 1}, {.cost = 1e-3, .opaque = true}));
  };
  const ValueId reader = add(a, plain);
  const ValueId last = add(a, taker);
  b.graph.add_target(b.node({reader, last}, 8, 1e-6));
  const Schedule packed = make_plan(b.graph, *keep_all()).schedule;
  CHECK(lay_out(b.graph, packed).intervals[2].takes_over == 0);
  b.graph.set_parallel();
  const Plan plan = make_plan(b.graph, *keep_all());
  CHECK(plan.layout.intervals[2].takes_over == none);
  CHECK(seconds_on(b.graph, plan, 2) < 1.1e-3);
}

TEST_CASE("a roomy layout is sound") {
  const int count = cases(40);
  int roomier = 0;
  for (int seed = 0; seed < count; ++seed) {
    Graph graph = tests::random_graph(static_cast<std::uint32_t>(seed), 20 + seed);
    for (NodeId node = 0; node < graph.node_count(); ++node) {
      if (graph.cost(node) > 0) graph.set_cost(node, 2e-6 * graph.cost(node));
    }
    graph.set_parallel();
    const Schedule schedule = make_plan(graph, *keep_all()).schedule;
    const Layout packed = lay_out(graph, schedule);
    for (const Bytes most : {packed.size, packed.size + packed.size / 10, 3 * packed.size}) {
      const std::optional<Layout> layout = roomy_layout(graph, schedule, packed, most);
      if (!layout) continue;
      ++roomier;
      REQUIRE(layout->size <= most);
      REQUIRE(layout->intervals.size() == packed.intervals.size());
      for (const Interval& a : layout->intervals) {
        REQUIRE(a.offset + a.bytes <= layout->size);
        for (const Interval& b : layout->intervals) {
          if (&a == &b || a.last < b.first || b.last < a.first) continue;
          REQUIRE((a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset));
        }
      }
    }
  }
  CHECK(roomier > 0);
}

TEST_CASE("chains and work that kernels share are left as they are") {
  Graph chain = tests::chain(50, 4'096, 1e-5);
  chain.set_parallel();
  const Schedule schedule = make_plan(chain, *keep_all()).schedule;
  const Layout packed = lay_out(chain, schedule);
  CHECK_FALSE(roomy_layout(chain, schedule, packed, 10 * packed.size));
  GraphBuilder b;
  const ValueId x = b.source(4'096);
  ValueId sum = none;
  for (int k = 0; k < 4; ++k) {
    const ValueId one = b.node({b.node({x}, 4'096, 1e-3)}, 8, 1e-6);
    sum = sum == none ? one : b.node({sum, one}, 8, 1e-6);
  }
  b.graph.add_target(sum);
  b.graph.set_parallel();
  const Plan plan = make_plan(b.graph, *keep_all());
  CHECK(plan.predicted_peak() == lay_out(b.graph, plan.schedule).size);
}

}  // namespace roomy_layout_test
