#include "strategy/compile/kept_plannings.h"

#include "tests/catch.h"
#include "tests/checkpoint/counted_planner.h"
#include "tests/checkpoint/graphs.h"

namespace palimpsest::kept_plannings_test {
namespace {

Bytes peak_within(KeptPlannings& plannings, const Graph& graph, const PlannerPtr& planner,
                  Bytes budget) {
  return plannings.with(std::make_shared<const Graph>(graph), planner, [&](Planning& planning) {
    const std::optional<Plan> plan = planning.look(budget);
    return plan ? plan->predicted_peak() : unlimited;
  });
}

TEST_CASE("kept plannings: a planner that ignores the budget is asked once for equal graphs") {
  for (const bool ignores : {true, false}) {
    INFO(ignores);
    const auto planner = std::make_shared<const tests::CountedPlanner>(ignores);
    KeptPlannings plannings(1_MiB);
    const Graph graph = tests::random_graph(7, 20);
    CHECK(peak_within(plannings, graph, planner, 64) == unlimited);
    const Bytes all = peak_within(plannings, graph, planner, unlimited);
    CHECK(peak_within(plannings, graph, planner, all) <= all);
    CHECK((planner->times == 1) == ignores);
    CHECK((plannings.bytes() > 0) == ignores);
    plannings.clear();
    CHECK(plannings.bytes() == 0);
  }
}

TEST_CASE("kept plannings: those of the graphs used last are kept, within so many bytes") {
  const auto planner = std::make_shared<const tests::CountedPlanner>(true);
  const auto plan = [&](KeptPlannings& plannings, std::uint32_t seed) {
    peak_within(plannings, tests::random_graph(seed, 20), planner, unlimited);
    return planner->times;
  };
  KeptPlannings all(1_MiB);
  plan(all, 1), plan(all, 2);
  KeptPlannings plannings(all.bytes());
  const int times = planner->times;
  CHECK(plan(plannings, 1) == times + 1);
  CHECK(plan(plannings, 2) == times + 2);
  CHECK(plan(plannings, 1) == times + 2);
  const Graph large = tests::random_graph(3, 40);
  for (int twice = 0; twice < 2; ++twice) {
    peak_within(plannings, large, planner, unlimited);
    CHECK(plannings.bytes() <= all.bytes());
  }
  CHECK(plan(plannings, 2) > times + 3);
  KeptPlannings none(0);
  plan(none, 1);
  CHECK(none.bytes() == 0);
}

TEST_CASE("kept plannings: graphs that differ in one thing are planned each") {
  const auto planner = std::make_shared<const tests::CountedPlanner>(true);
  KeptPlannings plannings(1_MiB);
  const auto times_for = [&](const Graph& graph) {
    peak_within(plannings, graph, planner, unlimited);
    return planner->times;
  };
  const Graph plain = tests::random_graph(7, 20);
  Graph parallel = plain;
  parallel.set_parallel();
  Graph costly = plain;
  costly.set_cost(plain.needed_nodes().back(), 7);
  Graph in_parts = plain;
  in_parts.set_backward_begins(10);
  Graph fused = plain;
  fused.set_form({.fuse = true, .simplify = false});
  CHECK(times_for(plain) == 1);
  CHECK(times_for(parallel) == 2);
  CHECK(times_for(costly) == 3);
  CHECK(times_for(in_parts) == 4);
  CHECK(times_for(fused) == 5);
  CHECK(times_for(plain) == 5);
}

TEST_CASE("kept plannings: one that fails is not lost, nor one of another planner taken") {
  const auto planner = std::make_shared<const tests::CountedPlanner>(true);
  KeptPlannings plannings(1_MiB);
  const auto graph = std::make_shared<const Graph>(tests::random_graph(7, 20));
  const auto make = [&](const PlannerPtr& by, Bytes budget) {
    return plannings.with(graph, by, [&](Planning& planning) { return planning.make(budget); });
  };
  CHECK_THROWS_AS(make(planner, 64), BudgetError);
  CHECK(make(planner, unlimited).planner == "counted");
  CHECK(planner->times == 1);
  CHECK(make(chain(), unlimited).planner == "chain");
}

}  // namespace
}  // namespace palimpsest::kept_plannings_test
