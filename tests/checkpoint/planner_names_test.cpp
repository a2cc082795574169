#include "checkpoint/planners.h"

#include <set>

#include "checkpoint/plan.h"
#include "tests/catch.h"
#include "tests/checkpoint/graphs.h"
#include "tests/error_of.h"

namespace planner_names_test {

using namespace palimpsest;

TEST_CASE("planner names: each names one planner, which plans") {
  const Graph graph = tests::chain(20);
  std::set<std::string_view> names;
  for (const NamedPlanner& planner : named_planners()) {
    CHECK(names.insert(planner.name).second);
    CHECK_FALSE(planner.summary.empty());
    const std::string text = std::string(planner.name) + (planner.setting.empty() ? "" : ":1");
    CHECK(make_plan(graph, *planner_named(text)).predicted_peak() > 0);
    CHECK(&named_planner(text) == &planner);
  }
}

TEST_CASE("planner names: settings stand behind a colon") {
  CHECK(planner_named("uniform:8")->name() == "uniform, 8 segments");
  CHECK(planner_named("every:3")->name() == "uniform, every 3 nodes");
  CHECK(planner_named("fraction:0.25")->name() == "fraction 0.25");
  CHECK(planner_named("automatic")->name() == planner_named("auto")->name());
  CHECK(PlannerSettings{"n:5", 5, {}}.count(7) == 5);
  CHECK(PlannerSettings{"n", {}, {}}.count(7) == 7);
}

TEST_CASE("planner names: what makes no sense is an error that says what would") {
  const auto make = [](const char* text) { return [text] { planner_named(text); }; };
  check_error(make("best"),
              {"[planner] 'best' is not a planner", "auto, keep_all", "uniform:SEGMENTS"});
  check_error(make(""), {"'' is not a planner"});
  check_error(make("auto:3"), {"'auto:3' takes no number; use auto"});
  check_error(make("uniform"), {"'uniform' needs a number; use uniform:SEGMENTS"});
  for (const char* text : {"uniform:", "uniform:x", "uniform:3x", "uniform: 3", "uniform:inf"}) {
    check_error(make(text), {text, "has no number after its colon; use uniform:SEGMENTS"});
  }
  for (const char* text : {"uniform:2.5", "uniform:-1", "uniform:4294967295"}) {
    check_error(make(text), {text, "needs an integer; give 1 to 4294967294"});
  }
  check_error(make("uniform:0"), {"[uniform]", "not 0"});
  check_error(make("fraction:2"), {"[fraction]", "[0, 1]"});
  check_error([] { planner_named("square_root", 1.0); }, {"'square_root' takes no time limit"});
}

}  // namespace planner_names_test
