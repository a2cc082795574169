#include "checkpoint/plan.h"

#include "checkpoint/engine_planner.h"
#include "checkpoint/planners.h"
#include "checkpoint/schedule.h"
#include "tests/catch.h"
#include "tests/checkpoint/graphs.h"

namespace plan_test {

using namespace palimpsest;
using Catch::Matchers::Contains;

namespace {

/// Proposes two schedules: keep-all, and recomputing everything for the last use.
class TwoWays final : public Planner {
 public:
  std::string name() const override { return "two ways"; }
  std::vector<Proposal> propose(const Graph& graph, Bytes) const override {
    // x → 1 → 2 → 3, 4 reads 1 and 3
    return {drop_after_last_use(graph, std::vector<NodeId>{1, 2, 3, 4}),
            drop_after_last_use(graph, std::vector<NodeId>{1, 2, 3, 1, 4})};
  }
};

/// Proposes keep-all, and searches only when given a smaller budget.
class Reluctant final : public EnginePlanner {
 public:
  std::string name() const override { return "reluctant"; }
  std::vector<Proposal> propose(const Graph& graph, Bytes budget) const override {
    return {TwoWays().propose(graph, budget).front()};
  }
  std::optional<Lowest> lowest(const Graph& graph, Bytes budget) const override {
    return Lowest{1280, {TwoWays().propose(graph, budget).back()}};
  }
};

Graph bow() {
  tests::GraphBuilder b;
  const ValueId x = b.source();
  const ValueId one = b.node({x}, 640, 2);
  const ValueId two = b.node({one}, 64, 1);
  const ValueId three = b.node({two}, 640, 1);
  b.graph.add_target(b.node({one, three}, 0, 4));
  return std::move(b.graph);
}

}  // namespace

TEST_CASE("plan: the cheapest schedule that fits, with its predictions") {
  const Graph graph = bow();
  const Plan plan = make_plan(graph, TwoWays());
  CHECK(plan.planner == "two ways");
  CHECK(plan.keep_all_peak == 1344);
  CHECK(plan.predicted_peak() == 1344);
  CHECK(plan.bytes_saved() == 0);
  CHECK(plan.compute_overhead() == 0);
  CHECK_FALSE(plan.recomputes(1));
  CHECK(make_plan(graph, TwoWays(), 1344).simulation.recomputed == 0);

  const Plan tight = make_plan(graph, TwoWays(), 1300);
  CHECK(tight.budget == 1300);
  CHECK(tight.predicted_peak() == 1280);
  CHECK(tight.bytes_saved() == 64);
  CHECK(tight.compute_overhead() == 0.25);
  CHECK(tight.recomputes(1));
  CHECK_FALSE(tight.recomputes(2));
  CHECK(tight.summary() ==
        "two ways: peak 1.25 KiB (95.2 % of keep-all), 1 of 5 steps recompute, 25.0 % extra work");
}

TEST_CASE("plan: a planner looks further when nothing that it proposed fits") {
  const Graph graph = bow();
  CHECK(make_plan(graph, Reluctant(), 1344).simulation.recomputed == 0);
  const Plan plan = make_plan(graph, Reluctant(), 1343);
  CHECK(plan.predicted_peak() == 1280);
  CHECK(plan.planner == "reluctant");
  CHECK(plan.candidates.size() == 1);
  CHECK(smallest_budget(graph, Reluctant()) == 1280);
  CHECK(find_plan(graph, Reluctant(), 1280));
  CHECK_FALSE(find_plan(graph, Reluctant(), 1279));
}

TEST_CASE("plan: too small a budget names one that works") {
  const Graph graph = bow();
  try {
    make_plan(graph, TwoWays(), 1000);
    FAIL("no error");
  } catch (const BudgetError& error) {
    CHECK(error.budget() == 1000);
    CHECK(error.smallest_feasible() == 1280);
    CHECK_THAT(error.what(),
               Contains("two ways") && Contains("1000 bytes") && Contains("1280 bytes"));
    CHECK(make_plan(graph, TwoWays(), error.smallest_feasible()).predicted_peak() == 1280);
  }
  CHECK(smallest_budget(graph, TwoWays()) == 1280);
  tests::GraphBuilder nothing;
  nothing.graph.add_target(nothing.node({}, 0));
  CHECK(smallest_budget(nothing.graph, *keep_all()) == 0);
}

TEST_CASE("plan: an empty graph is an error") {
  CHECK_THROWS_AS(make_plan(Graph(), *keep_all()), ArgumentError);
}

TEST_CASE("plan: a million nodes, kept") {
  const Graph graph = tests::chain(500'000, 4);
  const Plan plan = make_plan(graph, *keep_all());
  CHECK(plan.simulation.computed == 1'000'000);
  CHECK(plan.predicted_peak() == 64 * 500'001);
}

}  // namespace plan_test
