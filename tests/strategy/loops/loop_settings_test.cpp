#include <algorithm>

#include "checkpoint/planners.h"
#include "tests/catch.h"
#include "tests/strategy/loops/loops.h"

namespace palimpsest::loop_settings_test {
namespace {

constexpr std::int64_t steps = 200;

LossAndOutputs recurrent(Tape&, std::span<const Var> p, std::span<const Var> batch) {
  const Var start = tanh(matmul(batch[0], p[0]));
  const Var end =
      scan(start, steps, [&](const Var& h, const StepNumber&) { return tanh(matmul(h, p[1])); });
  return LossAndOutputs(mean(square(end)));
}

LossAndOutputs searching(Tape& tape, std::span<const Var> p, std::span<const Var> batch) {
  const std::vector<Var> start{tanh(matmul(batch[0], p[0])), full(tape, {}, 0.0)};
  const WhileResult end = while_loop(
      start, [](std::span<const Var> s, const StepNumber&) { return s[1] < steps - 0.5; },
      [&](std::span<const Var> s, std::span<const Var>, const StepNumber&) {
        return LoopStep{{tanh(matmul(s[0], p[1])), s[1] + 1.0}};
      });
  return LossAndOutputs(mean(square(end.state[0])));
}

struct Setting {
  std::vector<Tensor> parameters{Tensor::normal({16, 32}, 1, 0, 0.2),
                                 Tensor::normal({32, 32}, 2, 0, 0.2)};
  std::vector<Tensor> batch{Tensor::normal({8, 16}, 3)};
  ModelFunction model;

  Gradients gradients(ExecutionStrategy strategy) const {
    strategy.run.threads = 1;
    Execution execution(strategy);
    return execution.gradients(model, parameters, batch);
  }
  Report run(const ExecutionStrategy& strategy) const { return gradients(strategy).report(); }
  Bytes smallest() const {
    try {
      run({.run = {.memory_budget = 1}});
    } catch (const BudgetError& error) {
      return error.smallest_feasible();
    }
    return 0;
  }
};

ExecutionStrategy by_planner(const std::string& name) {
  return {.gradient = GradientMode::checkpointed, .checkpoint_planner = name};
}

TEST_CASE("a fraction of keep-all's memory counts the states of loops") {
  for (const ModelFunction& model : {ModelFunction(recurrent), ModelFunction(searching)}) {
    const Setting setting{.model = model};
    const Gradients expected = setting.gradients({});
    const auto all = static_cast<double>(expected.report().keep_all_peak);
    const Bytes smallest = setting.smallest();
    CHECK(static_cast<double>(smallest) < 0.1 * all);
    for (const double fraction : {1.0, 0.5, 1.0 / 3, 0.1, 0.01}) {
      CAPTURE(fraction);
      const auto share = static_cast<Bytes>(fraction * all);
      const Gradients found = setting.gradients(
          {.gradient = GradientMode::checkpointed, .checkpoint_fraction = fraction});
      const Report& report = found.report();
      CHECK(report.predicted_peak <= std::max(share, smallest));
      CHECK(report.measured_peak <= report.predicted_peak);
      CHECK(static_cast<double>(report.keep_all_peak) == all);
      for (std::size_t i = 0; i < setting.parameters.size(); ++i) {
        CHECK(same_bits(found.entries()[i].gradient, expected.entries()[i].gradient));
      }
      // A budget of as many bytes does the same.
      const Report within = setting.run({.run = {.memory_budget = std::max(share, smallest)}});
      CHECK(report.predicted_peak == within.predicted_peak);
      CHECK(report.loops[0].states == within.loops[0].states);
    }
    CHECK(setting.run(strategy_named("memory-efficient")).predicted_peak <=
          static_cast<Bytes>(all / 3));
  }
}

TEST_CASE("the planner fraction names a fraction for which loops fit") {
  Tape tape;
  const Var x = tape.parameter(wave(100));
  const Var speed = tape.parameter(number(0.2));
  const Var loss =
      sum(scan(x, 100, [&](const Var& u, const StepNumber&) { return ring_step(u, speed); }));
  const Plan whole = plan_backward(loss, {.threads = 1});
  for (const double share : {0.5, 0.3}) {
    const Report report = backward(loss, {.planner = fraction(share), .threads = 1}).report();
    CHECK(static_cast<double>(report.predicted_peak) <=
          share * static_cast<double>(whole.keep_all_peak));
    CHECK(report.keep_all_peak == whole.keep_all_peak);
  }
  try {
    backward(loss, {.planner = fraction(0.001), .threads = 1});
    FAIL("a thousandth is enough");
  } catch (const BudgetError& error) {
    CHECK(error.own_limit());
    CHECK(error.smallest_feasible() < whole.keep_all_peak / 3);
    CHECK_NOTHROW(backward(loss, {.memory_budget = error.smallest_feasible(), .threads = 1}));
    const std::string text = error.what();
    const std::string before = "give a fraction of at least ";
    const auto at = text.find(before);
    REQUIRE(at != std::string::npos);
    const double enough = std::stod(text.substr(at + before.size()));
    CHECK(enough < 0.34);
    CHECK_NOTHROW(backward(loss, {.planner = fraction(enough), .threads = 1}));
  }
}

TEST_CASE("settings that always recompute leave loops fewer states") {
  const Setting setting{.model = recurrent};
  const Gradients expected = setting.gradients({});
  const Bytes all = expected.report().keep_all_peak;
  struct Row {
    ExecutionStrategy strategy;
    std::uint32_t states;
  };
  ExecutionStrategy interval{.gradient = GradientMode::checkpointed, .checkpoint_interval = 10};
  ExecutionStrategy chosen{.gradient = GradientMode::checkpointed};
  chosen.run.planner = square_root();
  const std::vector<Row> rows{{by_planner("square_root"), 14},
                              {by_planner("uniform:8"), 8},
                              {by_planner("every:10"), 20},
                              {by_planner("binomial:3"), 3},
                              {interval, 20},
                              {chosen, 14}};
  for (const auto& [strategy, states] : rows) {
    CAPTURE(strategy.summary());
    const Gradients found = setting.gradients(strategy);
    const Report& report = found.report();
    REQUIRE(report.loops.size() == 1);
    CHECK(report.loops[0].states == states);
    CHECK(report.loops[0].kept_steps == 0);
    CHECK(report.loops[0].recomputed_steps > 0);
    CHECK(report.predicted_peak < all / 2);
    CHECK(report.keep_all_peak == all);
    CHECK(report.compute_overhead > 0);
    for (std::size_t i = 0; i < setting.parameters.size(); ++i) {
      CHECK(same_bits(found.entries()[i].gradient, expected.entries()[i].gradient));
    }
    // A budget limits the states further.
    ExecutionStrategy tight = strategy;
    tight.run.memory_budget = report.predicted_peak - 3 * 8 * 32 * 4;
    try {
      const Report within = setting.run(tight);
      CHECK(within.loops[0].states < states);
      CHECK(within.predicted_peak <= tight.run.memory_budget);
    } catch (const BudgetError& error) {
      CHECK(states <= 3);
    }
  }
  CHECK(Setting{.model = searching}.run(by_planner("square_root")).loops[0].states == 32);
}

TEST_CASE("every planner that a strategy takes without a budget divides loops") {
  const Setting setting{.model = recurrent};
  const Bytes all = setting.run({}).keep_all_peak;
  int without_budget = 0;
  for (const NamedPlanner& named : named_planners()) {
    std::string name(named.name);
    if (named.setting.starts_with(':')) name += named.name == "fraction" ? ":0.3" : ":4";
    CAPTURE(name);
    try {
      require_valid(by_planner(name));
    } catch (const ArgumentError&) {
      continue;  // it says that it needs a budget
    }
    ++without_budget;
    CHECK(setting.run(by_planner(name)).predicted_peak <= all / 2);
  }
  CHECK(without_budget == 5);
}

}  // namespace
}  // namespace palimpsest::loop_settings_test
