// Plans and refusals do not depend on what an evaluator or an Execution has planned or run before.
#include <atomic>
#include <functional>
#include <stdexcept>
#include <vector>

#include "palimpsest.h"
#include "tests/catch.h"
#include "tests/strategy/execution/outputs.h"

namespace palimpsest::history_test {
namespace {

/// With a factor of 2, two values are equal, and one of them is left out.
LossAndOutputs with_factor(Tape& tape, double factor) {
  const Var w = tape.parameter(Tensor::normal({64, 64}, 1, 0, 0.1, DType::f64));
  const Var x = tape.constant(Tensor::normal({512, 64}, 2, 0, 1, DType::f64));
  const Var h = tanh(matmul(x, w));
  const Var a = matmul(h * 2.0, w);
  const Var b = matmul(h * factor, w);
  return {mean(square(tanh(a))), {a, b}};
}

TEST_CASE("history: the constants of another program leave plans and named budgets as they were") {
  Tape tape(lazy());
  const auto peak = [&](double factor, Bytes budget) {
    tape.clear();
    const RunOptions options{.memory_budget = budget, .threads = 1};
    return backward(with_factor(tape, factor), options).report().predicted_peak;
  };
  const auto named = [&](double factor) {
    return budget_named_by([&](Bytes budget) { peak(factor, budget); });
  };
  const Bytes whole = peak(2, unlimited);
  const Bytes least = named(2);
  for (const double other : {3.0, 5.0, 7.0}) {
    CHECK(peak(other, unlimited) > whole);
    CHECK(peak(2, unlimited) == whole);
    CHECK(named(2) == least);
    CHECK(peak(2, least) <= least);
  }
}

TEST_CASE("history: plans and forecasts drop present values where a run would") {
  const auto record = [](Tape& tape, std::vector<Var>& values) {
    const Var w = tape.parameter(Tensor::normal({64, 64}, 1, 0, 0.1));
    Var h = tape.constant(Tensor::normal({256, 64}, 2));
    for (int i = 0; i < 12; ++i) values.push_back(h = tanh(matmul(h, w)));
    return mean(square(h));
  };
  Tape fresh;
  std::vector<Var> of_fresh;
  const Var loss_of_fresh = record(fresh, of_fresh);
  const Bytes least = budget_named_by(
      [&](Bytes budget) { plan_backward(loss_of_fresh, {.memory_budget = budget, .threads = 1}); });
  REQUIRE(least > 0);
  for (const Bytes budget : {least, least + 100'000}) {
    Tape tape;
    std::vector<Var> values;
    const Var loss = record(tape, values);
    evaluate(values, {.threads = 1});
    const RunOptions options{.memory_budget = budget, .threads = 1};
    const Bytes planned = plan_backward(loss, options).predicted_peak();
    CHECK(forecast_backward(loss, options).peak == planned);
    for (const Var& value : values) CHECK(tape.has_value(value.id()));
    CHECK(backward(loss, options).report().predicted_peak == planned);
  }
}

using Part = std::span<const Var>;

/// A wide program and a chain of as many nodes and bytes.
Var wide(const Var& h) {
  std::vector<Var> values{cumsum(h, 0)};
  for (int i = 1; i < 8; ++i) values.push_back(cumsum(values.back(), 0));
  Var s = values[0];
  for (int i = 1; i < 8; ++i) s = cumsum(s * values[static_cast<std::size_t>(i)], 0);
  return mean(s);
}
Var chained(const Var& h) {
  Var s = h;
  for (int i = 0; i < 8; ++i) s = cumsum(s, 0);
  for (int i = 1; i < 8; ++i) s = cumsum(s * s, 0);
  return mean(s);
}

/// Gradients of models of two parameters and one batch.
class Runs {
 public:
  explicit Runs(const ExecutionStrategy& strategy, std::int64_t rows = 20)
      : execution_(strategy), batch_{Tensor::normal({rows, 1000}, 7)} {}

  Report run(const std::function<Var(const Var&)>& f) {
    return execution_
        .gradients([&](Tape&, Part parameters,
                       Part batch) -> LossAndOutputs { return f(batch[0] * parameters[0]); },
                   parameters_, batch_)
        .report();
  }

 private:
  Execution execution_;
  std::vector<Tensor> parameters_{Tensor::normal({1000}, 1, 0, 0.1)};
  std::vector<Tensor> batch_;
};

TEST_CASE("history: a model does not get the smallest budget of another one") {
  ExecutionStrategy strategy;
  strategy.gradient = GradientMode::checkpointed;
  strategy.checkpoint_fraction = 0.3;
  strategy.run.threads = 1;
  const Report alone = Runs(strategy).run(chained);
  Runs both(strategy);
  CHECK(both.run(wide).predicted_peak > alone.predicted_peak);
  CHECK(both.run(chained).predicted_peak == alone.predicted_peak);
}

TEST_CASE("history: a model with other outputs does not get that budget either") {
  ExecutionStrategy strategy;
  strategy.gradient = GradientMode::checkpointed;
  strategy.checkpoint_fraction = 0.1;
  strategy.run.threads = 1;
  const auto peak = [](Execution& execution, bool has_outputs) {
    return execution
        .gradients(
            [&](Tape& tape, Part, Part) {
              LossAndOutputs made = with_factor(tape, 3);
              if (!has_outputs) made.outputs.clear();
              return made;
            },
            std::vector<Tensor>{Tensor::scalar(1.0)}, std::vector<Tensor>{Tensor::zeros({1, 1})})
        .report()
        .predicted_peak;
  };
  for (const bool has_outputs : {false, true}) {
    Execution alone(strategy);
    const Bytes expected = peak(alone, has_outputs);
    Execution both(strategy);
    peak(both, !has_outputs);
    CHECK(peak(both, has_outputs) == expected);
  }
}

TEST_CASE("history: parts of another model are planned before any of them is computed") {
  std::atomic<int> calls = 0;
  ExecutionStrategy strategy;
  strategy.parallelism = ParallelMode::data_parallel;
  strategy.workers = 2;
  strategy.run.threads = 2;
  strategy.run.progress = on_progress([&](const RunProgress&) { ++calls; });
  const auto light = [](const Var& h) { return sum(h); };
  const auto heavy = [](Var h) {
    for (int i = 0; i < 6; ++i) h = sin(cumsum(h, 1));
    return sum(h);
  };
  const Bytes least = budget_named_by([&](Bytes budget) {
    strategy.run.memory_budget = budget;
    Runs(strategy, 3).run(heavy);
  });
  strategy.run.memory_budget = least - 5'000;
  Runs runs(strategy, 3);
  runs.run(light);
  calls = 0;
  CHECK_THROWS_AS(runs.run(heavy), BudgetError);
  CHECK(calls == 0);
}

TEST_CASE("history: cached results of a program are not limited by the first run of another") {
  const auto run = [](Tape& tape, const auto& f) {
    tape.clear();
    const Var w = tape.parameter(Tensor::normal({1000}, 1, 0, 0.1));
    const Var kept = cumsum(sin(tape.constant(Tensor::normal({20, 1000}, 9))), 0);
    const Var x = tape.constant(Tensor::normal({20, 1000}, 8));
    const RunOptions options{.threads = 1, .memory = AllocationPolicy::cached};
    return backward(f(x * w) * mean(kept), options).report();
  };
  Tape alone;
  const Bytes first = run(alone, chained).predicted_peak;
  Tape both;
  CHECK(run(both, wide).predicted_peak > first);
  for (int i = 0; i < 3; ++i) CHECK(run(both, chained).predicted_peak <= first);
}

TEST_CASE("history: a pipeline plans again where parts of the batch have other sizes") {
  ExecutionStrategy strategy;
  strategy.parallelism = ParallelMode::pipeline;
  strategy.stages = 2;
  strategy.accumulation = 16;
  strategy.run.threads = 2;
  const std::vector<Tensor> parameters{Tensor::normal({8, 8}, 1, 0, 0.1),
                                       Tensor::normal({8, 256}, 2, 0, 0.1)};
  const auto peak = [&](Execution& execution, std::int64_t examples) {
    const std::vector<Tensor> batch{Tensor::normal({examples, 8}, 7)};
    execution.value([](Tape&, Part w,
                       Part x) -> LossAndOutputs { return matmul(tanh(matmul(x[0], w[0])), w[1]); },
                    parameters, batch);
    return execution.report().predicted_peak;
  };
  Execution alone(strategy);
  const Bytes most = peak(alone, 31);
  Execution execution(strategy);
  const Bytes least = peak(execution, 17);
  CHECK(least < most);
  CHECK(peak(execution, 31) == most);
  CHECK(peak(execution, 17) == least);
}

TEST_CASE("history: a call that fails draws no random numbers") {
  ExecutionStrategy strategy;
  const int way = GENERATE(0, 1, 2);
  if (way == 1) {
    strategy.mode = ExecutionMode::eager;
    strategy.accumulation = 2;
  } else if (way == 2) {
    strategy.parallelism = ParallelMode::pipeline;
    strategy.stages = 2;
    strategy.accumulation = 2;
  }
  strategy.run.threads = 2;
  const std::vector<Tensor> parameters{Tensor::normal({50}, 1)};
  const std::vector<Tensor> batch{Tensor::normal({4, 50}, 2)};
  const auto with_dropout = [](Tape&, Part w, Part x) -> LossAndOutputs {
    return mean(dropout(tanh(x[0] * w[0]), 0.5));
  };
  const auto failing = [](Tape&, Part, Part) -> LossAndOutputs {
    throw std::runtime_error("a model that fails");
  };
  const auto wrong = [](Tape&, Part w, Part x) -> LossAndOutputs { return tanh(x[0] * w[0]); };
  Execution whole(strategy);
  Execution disturbed(strategy);
  for (int step = 0; step < 3; ++step) {
    CHECK_THROWS_AS(disturbed.gradients(failing, parameters, batch), std::runtime_error);
    CHECK_THROWS_AS(disturbed.gradients(wrong, parameters, batch), Error);
    const Tensor expected = whole.gradients(with_dropout, parameters, batch).loss();
    const Tensor found = disturbed.gradients(with_dropout, parameters, batch).loss();
    CHECK(same_bits(found, expected));
  }
}

}  // namespace
}  // namespace palimpsest::history_test
