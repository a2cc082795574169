#include "strategy/kept_plannings.h"

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
    KeptPlannings plannings(2);
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

TEST_CASE("kept plannings: those of the graphs used last are kept") {
  const auto planner = std::make_shared<const tests::CountedPlanner>(true);
  KeptPlannings plannings(2);
  const auto plan = [&](std::uint32_t seed) {
    peak_within(plannings, tests::random_graph(seed, 20), planner, unlimited);
    return planner->times;
  };
  CHECK(plan(1) == 1);
  CHECK(plan(2) == 2);
  CHECK(plan(1) == 2);
  CHECK(plan(3) == 3);
  CHECK(plan(1) == 3);
  CHECK(plan(2) == 4);
}

TEST_CASE("kept plannings: one that fails is not lost, nor one of another planner taken") {
  const auto planner = std::make_shared<const tests::CountedPlanner>(true);
  KeptPlannings plannings(2);
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
