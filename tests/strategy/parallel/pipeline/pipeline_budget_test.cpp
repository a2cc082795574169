#include <oneapi/tbb/global_control.h>

#include <algorithm>
#include <atomic>

#include "tests/cases.h"
#include "tests/strategy/execution/runs.h"

namespace palimpsest::pipeline_budget_test {
namespace {

using Catch::Matchers::Contains;

struct SomeThreads {
  tbb::global_control control{tbb::global_control::max_allowed_parallelism, 4};
};

/// Layers of some width that keep many values; counts the calls of a kernel.
SmallModel layers(std::int64_t width, std::int64_t examples, std::size_t count) {
  std::vector<Tensor> parameters;
  for (std::size_t k = 0; k < count; ++k) {
    parameters.push_back(Tensor::normal({width, width}, k, 0, 0.2));
  }
  return {"layers",
          parameters,
          {Tensor::uniform({examples, width}, 99, -1, 1)},
          [](Tape&, std::span<const Var> p, std::span<const Var> batch) {
            Var y = batch[0];
            for (const Var& layer : p) y = tanh(sin(matmul(y, layer)) * 1.5);
            return mean(y * y);
          }};
}

Bytes smallest_of(const SmallModel& model, ExecutionStrategy strategy) {
  strategy.run.memory_budget = 1;
  try {
    run(model, strategy, 1);
  } catch (const BudgetError& error) {
    CHECK(error.budget() == 1);
    CHECK_THAT(error.what(),
               Contains("[pipeline]") && Contains("stages, with the values they exchange"));
    return error.smallest_feasible();
  }
  FAIL("a byte is enough");
  return 0;
}

TEST_CASE_METHOD(SomeThreads, "pipelines: every budget from the smallest to none is kept") {
  for (const SmallModel& model : {layers(16, 48, 6), small_transformer(), heat()}) {
    const int parts = model.name == "layers" ? 6 : 3;
    const Found expected = run(model, {.accumulation = parts});
    for (const int stages : {1, 2, 3}) {
      ExecutionStrategy strategy = pipeline_of(stages, parts);
      const Report whole = run(model, strategy).report;
      const Bytes smallest = smallest_of(model, strategy);
      CHECK(smallest < whole.predicted_peak);
      double last_cost = 0;
      const int steps = 1 + cases(5);
      for (int step = 0; step <= steps; ++step) {
        strategy.run.memory_budget = smallest + (whole.predicted_peak - smallest) * step / steps;
        CAPTURE(model.name, stages, step, strategy.run.memory_budget);
        const Found found = run(model, strategy);
        CHECK(have_same_bits(found, expected));
        CHECK(found.report.measured_peak <= found.report.predicted_peak);
        CHECK(found.report.predicted_peak <= strategy.run.memory_budget);
        CHECK(found.report.budget == strategy.run.memory_budget);
        Bytes budgets = 0;
        Bytes peaks = 0;
        for (const Report::Stage& stage : found.report.stages) {
          CHECK(stage.measured_peak <= stage.predicted_peak);
          CHECK(stage.predicted_peak <= stage.budget);
          budgets += stage.budget;
          peaks += stage.predicted_peak;
        }
        CHECK(budgets <= strategy.run.memory_budget);
        CHECK(peaks == found.report.predicted_peak);
        if (step == steps) {
          for (const Report::Stage& stage : found.report.stages) CHECK_FALSE(stage.computes_again);
        }
        if (step > 0) CHECK(found.report.compute_overhead <= last_cost + 1e-9);
        last_cost = found.report.compute_overhead;
      }
      strategy.run.memory_budget = smallest - 1;
      CHECK_THROWS_AS(run(model, strategy, 1), BudgetError);
    }
  }
}

TEST_CASE_METHOD(SomeThreads, "pipelines: loops hold states within the budget") {
  SmallModel model = layers(16, 12, 2);
  model.loss = [](Tape&, std::span<const Var> p, std::span<const Var> batch) {
    Var y = batch[0];
    for (const Var& layer : p) {
      y = scan(y, 40,
               [&](const Var& state, const StepNumber&) { return tanh(matmul(state, layer)); });
    }
    return mean(y * y);
  };
  const Found expected = run(model, {.accumulation = 3});
  ExecutionStrategy strategy = pipeline_of(2, 3);
  const Report whole = run(model, strategy).report;
  const Bytes smallest = smallest_of(model, strategy);
  CHECK(smallest < whole.predicted_peak / 2);
  for (const Bytes budget : {smallest, (smallest + whole.predicted_peak) / 2, unlimited}) {
    strategy.run.memory_budget = budget;
    CAPTURE(smallest, whole.predicted_peak, budget);
    const Found found = run(model, strategy);
    CHECK(have_same_bits(found, expected));
    CHECK(found.report.measured_peak <= found.report.predicted_peak);
    CHECK(found.report.predicted_peak <= budget);
    for (const Report::Stage& stage : found.report.stages) CHECK(stage.computes_again);
    CHECK(found.report.recomputed > 0);
    CHECK(found.report.compute_overhead > 0.1);
  }
}

TEST_CASE_METHOD(SomeThreads, "pipelines: no smaller budget does than the one that errors name") {
  // All results of the first layers are read after them, so recomputing them saves nothing.
  SmallModel model = layers(16, 12, 6);
  model.loss = [](Tape&, std::span<const Var> p, std::span<const Var> batch) {
    std::vector<Var> made{batch[0]};
    for (const Var& layer : p) made.push_back(tanh(matmul(made.back(), layer)));
    Var y = made.back();
    for (std::size_t k = p.size(); k-- > 0;) y = sin(matmul(y, p[k]) + made[k]);
    return mean(y * y);
  };
  ExecutionStrategy strategy = pipeline_of(2, 4);
  const Bytes whole = run(model, strategy).report.predicted_peak;
  const Bytes smallest = smallest_of(model, strategy);
  for (int step = 1; step <= 16; ++step) {
    strategy.run.memory_budget = whole * step / 16;
    CAPTURE(strategy.run.memory_budget, smallest);
    if (strategy.run.memory_budget >= smallest) {
      CHECK(run(model, strategy).report.predicted_peak <= strategy.run.memory_budget);
    } else {
      CHECK_THROWS_AS(run(model, strategy), BudgetError);
    }
  }
}

TEST_CASE_METHOD(SomeThreads, "pipelines: where nothing is to be computed again nothing is") {
  // Products that are read early and late, but not by anything that an adjoint reads.
  SmallModel model = layers(32, 48, 2);
  model.batch.push_back(Tensor::normal({48, 32, 32}, 4, 0, 0.2));
  model.loss = [](Tape& tape, std::span<const Var> p, std::span<const Var> batch) {
    Var made;
    {
      const auto constant = tape.no_gradient();
      const Var factor = select(batch[1], 0, 0);
      std::vector<Var> products{batch[0]};
      for (int k = 0; k < 6; ++k) products.push_back(matmul(products.back(), factor));
      made = products[6];
      for (std::size_t k = 1; k < 6; ++k) made = matmul(made + products[k], factor);
    }
    return mean(matmul(made * sum(p[0]), p[1]));
  };
  ExecutionStrategy strategy = pipeline_of(2, 2);
  strategy.run.memory_budget = smallest_of(model, strategy);
  CHECK(run(model, strategy).report.recomputed > 0);
  strategy.gradient = GradientMode::full;
  CHECK_THROWS_AS(run(model, strategy), BudgetError);
  strategy.run.memory_budget = smallest_of(model, strategy);
  const Report within = run(model, strategy).report;
  CHECK(within.recomputed == 0);
  CHECK(within.compute_overhead < 1e-9);
}

TEST_CASE_METHOD(SomeThreads, "pipelines: refused budgets come before any work") {
  std::atomic<int> calls = 0;
  const CustomOperation counted({.name = "counted",
                                 .forward =
                                     [&](const CustomCall& call) {
                                       ++calls;
                                       std::copy_n(call.inputs[0].raw(), call.inputs[0].bytes(),
                                                   call.outputs[0].raw());
                                     },
                                 .vjp = [](const Pullback& p) { p.set(0, p.adjoint()); }});
  SmallModel model = layers(16, 12, 4);
  const ModelFunction plain = model.loss;
  model.loss = [&](Tape& tape, std::span<const Var> p, std::span<const Var> batch) {
    const Var first = counted({batch[0]});
    return plain(tape, p, {&first, 1});
  };
  ExecutionStrategy strategy = pipeline_of(2, 3);
  strategy.run.memory_budget = smallest_of(model, strategy);
  CHECK(calls == 0);
  run(model, strategy, 1);
  CHECK(calls > 0);
}

TEST_CASE_METHOD(SomeThreads, "pipelines: first stages run forward again first") {
  const SmallModel model = layers(16, 64, 8);
  ExecutionStrategy strategy = pipeline_of(4, 8);
  const Report whole = run(model, strategy).report;
  std::vector<int> again;
  for (int step = 0; step < 16; ++step) {
    strategy.run.memory_budget = whole.predicted_peak * (16 - step) / 16;
    Found found;
    try {
      found = run(model, strategy);
    } catch (const BudgetError&) {
      break;
    }
    int count = 0;
    for (const Report::Stage& stage : found.report.stages) {
      if (stage.computes_again)
        CHECK(&stage == &found.report.stages[static_cast<std::size_t>(count)]);
      count += stage.computes_again ? 1 : 0;
    }
    again.push_back(count);
  }
  CHECK(again.front() == 0);
  CHECK(again.back() == 4);
  CHECK(std::is_sorted(again.begin(), again.end()));
}

TEST_CASE("pipelines: a stage keeps for as many micro-batches as it has in flight") {
  const SmallModel model = layers(16, 512, 8);
  const auto stages_of = [&](int stages) {
    return run(model, pipeline_of(stages, 8)).report.stages;
  };
  const auto four = stages_of(4);
  for (std::size_t s = 0; s < 4; ++s) CHECK(four[s].in_flight == 4 - static_cast<int>(s));
  // The stages are alike, so the first one keeps the most.
  CHECK(four[0].predicted_peak > four[1].predicted_peak);
  CHECK(four[1].predicted_peak > four[2].predicted_peak);
  // Less than if every micro-batch was kept.
  CHECK(run(model, pipeline_of(2, 16)).report.predicted_peak <
        run(model, pipeline_of(2, 2)).report.predicted_peak);
}

}  // namespace
}  // namespace palimpsest::pipeline_budget_test
