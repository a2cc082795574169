#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "strategy/explain/explanation.h"
#include "strategy/explain/page.h"
#include "tests/catch.h"
#include "tests/strategy/loops/loops.h"

namespace palimpsest::loop_reports_test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::WithinRel;

/// A loop of cheap steps, which keep no values.
struct Decay {
  Tape tape;
  Var rate = tape.parameter(wave(64), "rate");
  Var loss;

  explicit Decay(std::int64_t steps = 400, const LoopOptions& options = {}) {
    const Var start = tape.constant(wave(64));
    const Var end = scan(
        start, steps, [&](const Var& u, const StepNumber&) { return u + 0.001 * sin(u * rate); },
        options);
    loss = sum(end);
  }
};

/// Two loops with other operations between them. The first one's steps have values worth keeping.
struct TwoLoops {
  Tape tape;
  Var weight = tape.parameter(Tensor::normal({16, 16}, 1, 0, 0.2), "weight");
  Var loss;

  TwoLoops() {
    const auto step = [&](const Var& h, const StepNumber&) { return tanh(matmul(h, weight)); };
    const Var middle = scan(tape.constant(Tensor::normal({8, 16}, 2)), 60, step);
    const Var end = scan(sin(middle) * middle, 90,
                         [&](const Var& u, const StepNumber&) { return u + 0.01 * sin(u); });
    loss = mean(end * end);
  }
};

/// A loop that ends after `steps` steps, which is not known before.
struct Search {
  Tape tape;
  Var rate = tape.parameter(wave(64), "rate");
  Var loss;

  explicit Search(double steps) {
    const std::vector<Var> start{tape.constant(wave(64)), full(tape, {}, 0.0)};
    const WhileResult end = while_loop(
        start, [&](std::span<const Var> s, const StepNumber&) { return s[1] < steps - 0.5; },
        [&](std::span<const Var> s, std::span<const Var>, const StepNumber&) {
          return LoopStep{{s[0] + 0.001 * sin(s[0] * rate), s[1] + 1.0}};
        });
    loss = sum(end.state[0]);
  }
};

template <class Model>
Bytes smallest_budget_of(const Model& model) {
  try {
    plan_backward(model.loss, {.memory_budget = 0, .threads = 1});
  } catch (const BudgetError& error) {
    return error.smallest_feasible();
  }
  return 0;
}

/// Compares all numbers of a plan and of a run within a budget with those of a run without one.
template <class Model>
void check_numbers(const Plan& whole, Bytes budget) {
  CAPTURE(budget);
  Model model;
  const RunOptions options{.memory_budget = budget, .threads = 1};
  const Plan plan = plan_backward(model.loss, options);
  CHECK(plan.keep_all_peak == whole.keep_all_peak);
  CHECK(plan.predicted_peak() <= budget);
  const double extra = plan.simulation.cost / whole.simulation.cost - 1;
  CHECK_THAT(plan.compute_overhead() + 1, WithinRel(extra + 1, 1e-9));
  CHECK(plan.recomputed_loop_steps == plan.loop_steps - whole.loop_steps);
  const Report report = backward(model.loss, options).report();
  CHECK(report.predicted_peak == plan.predicted_peak());
  CHECK(report.keep_all_peak == whole.keep_all_peak);
  CHECK(report.compute_overhead == plan.compute_overhead());
  CHECK(report.summary() == plan.summary());
  std::uint64_t steps = 0;
  for (const Report::Loop& loop : report.loops) steps += loop.forward_steps;
  CHECK(plan.loop_steps == steps);
}

TEST_CASE("numbers of plans and reports count the states and the work of loops") {
  {
    const Plan whole = plan_backward(Decay().loss, {.threads = 1});
    CHECK(whole.compute_overhead() == 0);
    CHECK(whole.recomputed_loop_steps == 0);
    CHECK(whole.loop_steps == 800);
    const Bytes smallest = smallest_budget_of(Decay());
    CHECK(smallest < whole.keep_all_peak / 10);
    for (const Bytes budget : {smallest, 2 * smallest, whole.keep_all_peak / 2}) {
      check_numbers<Decay>(whole, budget);
    }
    const Plan tight = plan_backward(Decay().loss, {.memory_budget = smallest, .threads = 1});
    CHECK(tight.recomputed_loop_steps > 400);
    CHECK(tight.compute_overhead() > 0.2);
    CHECK_THAT(tight.summary(), Contains(" steps of loops recompute, "));
  }
  const Plan whole = plan_backward(TwoLoops().loss, {.threads = 1});
  const Bytes smallest = smallest_budget_of(TwoLoops());
  for (const Bytes budget : {smallest, 2 * smallest, whole.keep_all_peak / 2}) {
    check_numbers<TwoLoops>(whole, budget);
  }
}

TEST_CASE("the steps that a report counts are those that a loop runs") {
  struct Counted {
    Tape tape;
    Var loss;
    explicit Counted(std::uint64_t& calls) {
      // The derivative reads the square, so a step that is differentiated runs it too.
      const CustomOperation square{
          {.name = "square",
           .forward =
               [&calls](const CustomCall& call) {
                 ++calls;
                 const auto x = call.inputs[0].data<double>();
                 const auto y = call.outputs[0].data<double>();
                 for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] * x[i];
               },
           .vjp = [](const Pullback& p) { p.set(0, 2.0 * p.input(0) * p.adjoint()); }}};
      const Var x = tape.parameter(wave(50));
      loss = sum(scan(x, 100, [=](const Var& u, const StepNumber&) { return sin(square({u})); }));
    }
  };
  std::uint64_t calls = 0;
  Counted first(calls);
  const Plan whole = plan_backward(first.loss, {.threads = 1});
  for (const Bytes budget : {unlimited, whole.keep_all_peak / 4, whole.keep_all_peak / 8}) {
    CAPTURE(budget);
    Counted model(calls);
    calls = 0;
    const Report report = backward(model.loss, {.memory_budget = budget, .threads = 1}).report();
    REQUIRE(report.loops.size() == 1);
    const Report::Loop& loop = report.loops[0];
    CHECK(loop.forward_steps == calls);
    CHECK(loop.recomputed_steps == calls - whole.loop_steps);
    CHECK((loop.recomputed_steps > 0) == (budget != unlimited));
  }
}

TEST_CASE("a loop's own budget makes it recompute, and numbers say so") {
  const Plan whole = plan_backward(Decay().loss, {.threads = 1});
  Decay narrow(400, {.memory_budget = 20'000});
  const Plan plan = plan_backward(narrow.loss, {.threads = 1});
  CHECK(plan.keep_all_peak == whole.keep_all_peak);
  CHECK_THAT(plan.compute_overhead() + 1,
             WithinRel(plan.simulation.cost / whole.simulation.cost, 1e-9));
  const Report report = backward(narrow.loss, {.threads = 1}).report();
  CHECK(report.keep_all_peak == whole.keep_all_peak);
  CHECK(report.compute_overhead == plan.compute_overhead());
  CHECK(report.loops[0].recomputed_steps == report.loops[0].forward_steps - 800);
}

TEST_CASE("what keep-all of a while_loop takes is not its budget") {
  const Plan whole = plan_backward(Search(300).loss, {.threads = 1});
  const Bytes budget = whole.keep_all_peak / 20;
  Search search(300);
  const Plan plan = plan_backward(search.loss, {.memory_budget = budget, .threads = 1});
  CHECK(plan.keep_all_peak == whole.keep_all_peak);
  CHECK_THAT(plan.compute_overhead() + 1,
             WithinRel(plan.simulation.cost / whole.simulation.cost, 1e-9));
  const Report report = backward(search.loss, {.memory_budget = budget, .threads = 1}).report();
  CHECK(report.keep_all_peak == whole.keep_all_peak);
  REQUIRE(report.loops.size() == 1);
  CHECK(report.loops[0].steps == 300);
  CHECK(report.loops[0].recomputed_steps == report.loops[0].forward_steps - 600);
  CHECK(report.loops[0].recomputed_steps > 0);
  Search again(300);
  const Report all = backward(again.loss, {.threads = 1}).report();
  CHECK(all.loops[0].forward_steps == 600);
  CHECK(all.loops[0].recomputed_steps == 0);
}

TEST_CASE("a program reports its loops like a tape") {
  const Plan whole = plan_backward(Decay().loss, {.threads = 1});
  const RunOptions options{.memory_budget = whole.keep_all_peak / 8, .threads = 1};
  const Plan expected = plan_backward(Decay().loss, options);
  const Program program = Program::gradients(
      [](Tape& tape) {
        const Var rate = tape.parameter(wave(64), "rate");
        const Var end = scan(tape.constant(wave(64)), 400, [=](const Var& u, const StepNumber&) {
          return u + 0.001 * sin(u * rate);
        });
        return sum(end);
      },
      options);
  Runner runner(program);
  runner.run();
  const Report report = runner.report();
  CHECK(program.plan().summary() == expected.summary());
  CHECK(report.summary() == expected.summary());
  CHECK(report.keep_all_peak == whole.keep_all_peak);
}

TEST_CASE("explanations divide other budgets between loops and the rest") {
  const Bytes smallest = smallest_budget_of(Decay());
  for (const Bytes budget : {unlimited, 3 * smallest}) {
    CAPTURE(budget);
    std::optional<Report> report;
    {
      Decay model;
      report = backward(model.loss, {.memory_budget = budget, .threads = 1}).report();
    }
    const Explanation::Budgets found = report->explanation->other_budgets(3);
    CHECK(found.smallest.budget == smallest);
    CHECK(found.bound <= smallest);
    CHECK(found.bound > 0);
    CHECK_FALSE(found.holds_states);
    std::vector<Explanation::Alternative> all = found.curve;
    if (found.less) all.push_back(*found.less);
    if (found.more) all.push_back(*found.more);
    CHECK(all.size() >= 4);
    for (const Explanation::Alternative& each : all) {
      CAPTURE(each.budget);
      Decay model;
      const Plan plan = plan_backward(model.loss, {.memory_budget = each.budget, .threads = 1});
      CHECK(plan.compute_overhead() == each.overhead);
      CHECK(plan.predicted_peak() == each.peak);
    }
    const std::string text = report->explain();
    CHECK_THAT(text, Contains("The smallest feasible budget is " + format_bytes(smallest)));
    const auto again = report->loops[0].recomputed_steps;
    CHECK((again > 0) == (budget != unlimited));
    CHECK((text.find("recomputed: nothing") == std::string::npos) == (again > 0));
    if (again > 0) {
      CHECK_THAT(text,
                 Contains("recomputed: " + std::to_string(again) + " of " +
                          std::to_string(report->loops[0].forward_steps) + " steps of loops"));
    }
    const std::string page = page_of(*report);
    const std::string begin = "type=\"application/json\">";
    const std::size_t first = page.find(begin) + begin.size();
    const auto data =
        nlohmann::json::parse(page.substr(first, page.find("</script>", first) - first));
    CHECK(data["repeated_steps"].size() == (again > 0 ? 1 : 0));
    CHECK(data["summary"] == report->summary());
    CHECK(data["here"][1] == report->compute_overhead);
  }
}

TEST_CASE("an explanation with users' operations leaves the states of loops as they are") {
  const CustomOperation same{{.name = "same",
                              .forward =
                                  [](const CustomCall& call) {
                                    std::ranges::copy(call.inputs[0].data<double>(),
                                                      call.outputs[0].data<double>().begin());
                                  },
                              .vjp = [](const Pullback& p) { p.set(0, p.adjoint()); }}};
  Tape tape;
  const Var x = tape.parameter(wave(64));
  const Var end = scan(x, 50, [&](const Var& u, const StepNumber&) { return sin(u); });
  const Report report = backward(sum(same({end}))).report();
  CHECK(report.explanation->other_budgets(2).holds_states);
  CHECK_THAT(report.explain(), Contains("loops that hold the same states as now"));
}

}  // namespace
}  // namespace palimpsest::loop_reports_test
