#include "strategy/explain/explanation.h"

#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "checkpoint/planners.h"
#include "palimpsest.h"
#include "strategy/explain/explain_text.h"
#include "strategy/explain/page.h"
#include "tests/catch.h"
#include "tests/checkpoint/graphs.h"
#include "tests/strategy/random_program.h"
#include "tests/temporary_file.h"

namespace palimpsest::explanation_test {
namespace {

using Catch::Matchers::Contains;

/// The data in a page.
nlohmann::json data_of(const std::string& page) {
  const std::string begin = "type=\"application/json\">";
  const std::size_t first = page.find(begin) + begin.size();
  return nlohmann::json::parse(page.substr(first, page.find("</script>", first) - first));
}

Explanation explanation_of(const Graph& graph, const PlannerPtr& planner, Bytes budget) {
  return {std::make_shared<const Graph>(graph),
          std::make_shared<const Plan>(make_plan(graph, *planner, budget)), planner,
          NodeLabels::of(graph)};
}

/// A plan of a random graph that recomputes as much as it must.
Explanation tight_explanation(std::uint32_t seed) {
  const Graph graph = tests::random_graph(seed, 4 + seed % 20);
  return explanation_of(graph, quick(), smallest_budget(graph, *quick()));
}

TEST_CASE("what an explanation lists as live adds up to the plan's live bytes, at every step") {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    const Explanation explanation = tight_explanation(seed);
    const Plan& plan = explanation.plan();
    for (std::size_t k = 0; k < plan.schedule.steps.size(); ++k) {
      if (plan.schedule.steps[k].kind != Step::Kind::compute) continue;
      Bytes bytes = 0;
      for (const auto& live : explanation.live_at(k)) bytes += live.bytes;
      INFO("graph " << seed << ", step " << k);
      CHECK(bytes == plan.simulation.timeline[k]);
    }
    CHECK(plan.simulation.timeline[explanation.peak_step()] == plan.simulation.peak);
  }
}

TEST_CASE("a page lists the same storages as live, by compute steps") {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const Explanation explanation = tight_explanation(seed);
    const nlohmann::json data = data_of(page_of(explanation, "graph"));
    const auto live = data["live"].get<std::vector<Bytes>>();
    std::vector<Bytes> listed(live.size());
    for (const auto& storage : data["storages"]) {
      const auto last = storage[2].get<std::int64_t>();
      for (auto k = std::max<std::int64_t>(0, storage[1].get<std::int64_t>()); k <= last; ++k) {
        listed[static_cast<std::size_t>(k)] += storage[3].get<Bytes>();
      }
    }
    INFO("graph " << seed);
    CHECK(listed == live);
    CHECK(*std::ranges::max_element(live) == live[data["peak_step"].get<std::size_t>()]);
  }
}

TEST_CASE("an explanation tells why a value is kept") {
  tests::GraphBuilder b;
  const ValueId x = b.source(8);
  const ValueId early = b.node({x}, 100);
  const ValueId operand = b.node({x}, 40);
  const ValueId peak = b.node({operand}, 500, 1, 30);
  const ValueId result = b.node({peak, early}, 10);
  b.graph.add_target(result);
  const Explanation explanation = explanation_of(b.graph, keep_all(), unlimited);
  CHECK(explanation.peak_node() == b.graph.producer(peak));
  using Reason = Explanation::Reason;
  std::map<Bytes, std::pair<Reason, NodeId>> live;
  for (const auto& each : explanation.live_at(explanation.peak_step())) {
    live[each.bytes] = {each.reason, each.reader};
  }
  const NodeId last = b.graph.producer(result);
  CHECK(live == std::map<Bytes, std::pair<Reason, NodeId>>{
                    {500, {Reason::made, last}},
                    {100, {Reason::read_later, last}},
                    {40, {Reason::operand, b.graph.producer(peak)}},
                    {30, {Reason::workspace, b.graph.producer(peak)}}});
}

TEST_CASE("an explanation lists what is recomputed, those that take longest first") {
  const Graph graph = tests::chain(16);
  const Explanation explanation = explanation_of(graph, square_root(), unlimited);
  std::uint32_t extra = 0;
  double seconds = 0;
  double last = INFINITY;
  for (const auto& [node, runs, time] : explanation.recomputed()) {
    CHECK(runs > 1);
    CHECK(time <= last);
    last = time;
    extra += runs - 1;
    seconds += time;
  }
  const Simulation& simulation = explanation.plan().simulation;
  CHECK(extra == simulation.recomputed);
  CHECK(seconds == simulation.cost - simulation.one_pass_cost);
}

TEST_CASE("other budgets are feasible, and cost no less when they are smaller") {
  const Graph graph = tests::chain(24);
  const Explanation explanation = explanation_of(graph, automatic(), 64 * 12);
  const Explanation::Budgets found = explanation.other_budgets(5);
  CHECK(found.bound <= found.smallest.peak);
  CHECK(found.smallest.budget == smallest_budget(graph, *automatic()));
  REQUIRE(found.less);
  REQUIRE(found.more);
  CHECK(found.less->overhead >= explanation.plan().compute_overhead());
  CHECK(found.more->overhead <= explanation.plan().compute_overhead());
  for (const auto& [budget, peak, overhead] : found.curve) CHECK(peak <= budget);
  CHECK(std::ranges::is_sorted(found.curve, std::ranges::greater(),
                               &Explanation::Alternative::overhead));
  CHECK(found.curve.back().overhead == 0);
}

TEST_CASE("other budgets are those of the form that backward takes within them") {
  int smaller_in_another_form = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    INFO("program " << seed);
    Tape tape;
    const Var loss = record_random(tape, seed, 30).loss;
    const Report report = backward(loss, {.threads = 1}).report();
    const Explanation& explanation = *report.explanation;
    const Explanation::Budgets found = explanation.other_budgets(2);
    std::vector<Explanation::Alternative> all = found.curve;
    if (found.less) all.push_back(*found.less);
    if (found.more) all.push_back(*found.more);
    for (const Explanation::Alternative& each : all) {
      INFO("budget " << each.budget);
      Tape again;
      const Var same = record_random(again, seed, 30).loss;
      const Plan plan = plan_backward(same, {.memory_budget = each.budget, .threads = 1});
      CHECK(plan.compute_overhead() == each.overhead);
    }
    try {
      plan_backward(loss, {.memory_budget = found.smallest.peak / 2, .threads = 1});
      FAIL("half of the smallest budget is enough");
    } catch (const BudgetError& error) {
      CHECK(found.smallest.budget <= error.smallest_feasible());
    }
    const Bytes in_this_form = smallest_budget(explanation.graph(), *automatic({.moves = 0}));
    if (found.smallest.budget < in_this_form) ++smaller_in_another_form;
  }
  CHECK(smaller_in_another_form > 0);
}

Report run_of(int width, int& line, const RunOptions& options = {}) {
  Tape tape;
  const auto scope = tape.scope("layer</script>");
  const Var x = tape.parameter(Tensor::ones({width}), "weight");
  Var y = x;
  line = __LINE__ + 1;
  for (int i = 0; i < 12; ++i) y = cumsum(sin(y), 0);
  return backward(sum(y * y), options).report();
}

TEST_CASE("a report explains its peak after its tape is gone") {
  int line = 0;
  const Report report = run_of(1024, line);
  const std::string text = report.explain();
  CHECK_THAT(text, Contains("peak: ") && Contains("explanation_test.cpp:" + std::to_string(line)) &&
                       Contains("read later by ") && Contains("layer</script>") &&
                       Contains("smallest feasible budget") && Contains("recomputed: nothing"));
  int tight_line = 0;
  const Report tight = run_of(1024, tight_line, {.memory_budget = report.predicted_peak * 2 / 3});
  CHECK_THAT(tight.explain(), Contains(" times\n") && Contains("10 % less memory"));
}

TEST_CASE("a program found again explains the lines of the current tape") {
  const auto record = [](Tape& tape, bool first) {
    const Var x = tape.parameter(Tensor::ones({64}));
    const Where one = Where::current();
    const Where another = Where::current();
    const Var y = cumsum(x, 0, {}, first ? one : another);
    return sum(cumsum(y * y, 0));
  };
  Tape tape(lazy());
  const std::string first = backward(record(tape, true)).report().explain();
  tape.clear();
  const std::string second = backward(record(tape, false)).report().explain();
  CHECK(first != second);
  tape.clear();
  CHECK(backward(record(tape, true)).report().explain() == first);
  tape.clear();
  CHECK(backward(record(tape, false)).report().explain() == second);
}

TEST_CASE("a report writes a page without references to other files") {
  int line = 0;
  const Report report = run_of(256, line);
  const TemporaryFile file;
  report.write_html(file.path());
  const std::string page = file.read();
  CHECK_THAT(page, Contains("<!doctype html>") && !Contains("src=") && !Contains("href="));
  const nlohmann::json data = data_of(page);
  CHECK(data["live"].size() == report.computed);
  CHECK(data["texts"].dump().find("layer</script>/weight") != std::string::npos);
  CHECK(!data["backward_step"].is_null());
}

TEST_CASE("an eager tape's backward part is explained like a plan") {
  Tape tape(eager());
  const Var x = tape.parameter(Tensor::ones({64}));
  const Report report = backward(sum(sin(x)), {.profile = true}).report();
  const nlohmann::json data = data_of(page_of(report));
  CHECK(data["live"].size() == report.computed);
  CHECK_THAT(report.explain(), Contains("plan: "));
}

}  // namespace
}  // namespace palimpsest::explanation_test
