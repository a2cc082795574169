#include "checkpoint/planners/planning.h"

#include "checkpoint/planners.h"
#include "tests/catch.h"
#include "tests/checkpoint/counted_planner.h"
#include "tests/checkpoint/graphs.h"

namespace planning_test {

using namespace palimpsest;

namespace {

/// The schedule and layout of the plan, or the smallest budget that the refusal names.
struct Outcome {
  Schedule schedule;
  std::vector<Bytes> offsets;
  Bytes bytes = 0;
  bool operator==(const Outcome&) const = default;
};

Outcome outcome_of(const Plan& plan) {
  Outcome outcome{plan.schedule, {}, plan.layout.size};
  for (const Interval& interval : plan.layout.intervals) outcome.offsets.push_back(interval.offset);
  return outcome;
}

template <class P>
Outcome outcome(P plan) {
  try {
    return outcome_of(plan());
  } catch (const BudgetError& error) {
    return {{}, {}, error.smallest_feasible()};
  }
}

}  // namespace

TEST_CASE("planning: a planner that ignores the budget is asked once") {
  const Graph graph = tests::random_graph(7, 20);
  for (const bool ignores : {true, false}) {
    INFO(ignores);
    const tests::CountedPlanner planner(ignores);
    Planning planning(graph, planner);
    const Bytes smallest = outcome([&] { return planning.make(0); }).bytes;
    CHECK(!planning.find(smallest / 2));
    CHECK(planning.make(smallest).predicted_peak() <= smallest);
    CHECK((planner.times == 1) == ignores);
    CHECK((planning.bytes() > 0) == ignores);
  }
}

TEST_CASE("planning: what was planned before changes no plan") {
  for (const std::uint32_t seed : {3u, 4u}) {
    INFO(seed);
    const Graph graph = tests::random_graph(seed, 8);
    const Bytes all = make_plan(graph, *keep_all()).predicted_peak();
    for (const PlannerPtr& planner : {automatic({.moves = 0}), greedy(), fraction(0.6), online()}) {
      INFO(planner->name());
      const Proposal known = keep_all()->propose(graph, 0).front();
      Planning planning(graph, *planner);
      for (const Bytes percent : {80, 0, 60, 60}) {
        const Bytes budget = all * percent / 100;
        const std::optional<Plan> found = planning.find(budget);
        const std::optional<Plan> alone = find_plan(graph, *planner, budget);
        REQUIRE(found.has_value() == alone.has_value());
        if (found) CHECK(outcome_of(*found) == outcome_of(*alone));
        const std::optional<Plan> looked = planning.look(budget);
        const Outcome made = outcome([&] { return planning.make(budget); });
        CHECK(looked.has_value() == !made.offsets.empty());
        if (looked) CHECK(outcome_of(*looked) == made);
        for (const std::size_t more : {0, 1}) {
          const std::span beside(&known, more);
          CHECK(outcome([&] { return planning.make(budget, beside); }) ==
                outcome([&] { return make_plan(graph, *planner, budget, beside); }));
        }
      }
    }
  }
}

TEST_CASE("planning: a refusal names a budget only where nobody knows a smaller one") {
  int bounds = 0;
  for (std::uint32_t seed = 1; seed <= 6; ++seed) {
    INFO(seed);
    const Graph graph = tests::random_graph(seed, 20);
    for (const PlannerPtr& planner :
         {automatic({.moves = 0}), greedy(), online(), search({.moves = 5})}) {
      INFO(planner->name());
      const auto refused = [&](Bytes named) {
        return Planning(graph, *planner).plan(0, {}, named).refusal().smallest_feasible();
      };
      const Bytes smallest = refused(unlimited);
      CHECK(make_plan(graph, *planner, smallest).predicted_peak() <= smallest);
      CHECK(refused(smallest) == smallest);
      for (const Bytes named : {smallest - 1, smallest / 2, Bytes{0}}) {
        const Bytes bound = refused(named);
        CHECK(bound > named);
        CHECK(bound <= smallest);
        if (bound < smallest) ++bounds;
      }
    }
  }
  CHECK(bounds > 0);
}

}  // namespace planning_test
