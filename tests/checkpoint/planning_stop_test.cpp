#include "checkpoint/planning_stop.h"

#include <chrono>
#include <thread>

#include "autodiff/error.h"
#include "checkpoint/plan.h"
#include "checkpoint/planners.h"
#include "tests/catch.h"
#include "tests/checkpoint/graphs.h"

namespace palimpsest::planning_stop_test {

TEST_CASE("every planner that searches ends when planning is stopped") {
  const Graph graph = tests::chain(12);
  const Bytes budget = 6 * 64;
  for (const PlannerPtr& planner : {greedy(), min_cut(), automatic(), search(), quick(), exact(),
                                    online(), chain(), fraction(0.5)}) {
    CAPTURE(planner->name());
    std::stop_source source;
    const std::stop_token token = source.get_token();
    const PlanningStop stop(token);
    const auto expected = planner->propose(graph, budget);
    source.request_stop();
    CHECK_THROWS_AS(planner->propose(graph, budget), StoppedError);
    CHECK_THROWS_AS(make_plan(graph, *planner, budget), StoppedError);
    {
      const std::stop_token none;  // leaves the outer token in place
      const PlanningStop inner(none);
      CHECK_THROWS_AS(planner->propose(graph, budget), StoppedError);
      std::stop_source other;
      const std::stop_token of_other = other.get_token();
      const PlanningStop innermost(of_other);
      CHECK(planner->propose(graph, budget).size() == expected.size());
    }
  }
  CHECK_NOTHROW(PlanningStop::check());
}

TEST_CASE("a long search ends soon after planning is stopped") {
  const Graph graph = tests::chain(300);
  std::stop_source source;
  const std::stop_token token = source.get_token();
  const PlanningStop stop(token);
  const auto begin = std::chrono::steady_clock::now();
  const std::jthread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    source.request_stop();
  });
  CHECK_THROWS_AS(make_plan(graph, *automatic({.seconds = 60}), 12 * 64), StoppedError);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));
}

}  // namespace palimpsest::planning_stop_test
