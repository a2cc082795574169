// Budgets of executions whose calls need different shares of them.
#include <oneapi/tbb/global_control.h>

#include "strategy/execution/batch_cut.h"
#include "tests/strategy/execution/runs.h"

namespace palimpsest::budget_test {
namespace {

struct FourThreads {
  tbb::global_control control{tbb::global_control::max_allowed_parallelism, 4};
};

TEST_CASE_METHOD(FourThreads, "execution: values of replicas need no room for sums of gradients") {
  const std::vector<Tensor> parameters{Tensor::normal({512, 512}, 1, 0, 0.05)};
  const std::vector<Tensor> batch{Tensor::uniform({8, 512}, 2)};
  const ModelFunction model = [](Tape&, std::span<const Var> p, std::span<const Var> b) {
    return tanh(matmul(b[0], p[0]));
  };
  const ModelFunction loss = [&](Tape& tape, std::span<const Var> p, std::span<const Var> b) {
    return mean(model(tape, p, b).loss);
  };
  ExecutionStrategy strategy{.parallelism = ParallelMode::data_parallel,
                             .workers = 2,
                             .run = {.memory_budget = parameters[0].bytes()}};
  Execution values(strategy);
  const Tensor expected = values.value(model, parameters, batch);
  CHECK(values.report().predicted_peak <= strategy.run.memory_budget);
  CHECK(estimate(strategy, {model, parameters, batch, false}).peak ==
        values.report().predicted_peak);
  CHECK_THROWS_AS(values.gradients(loss, parameters, batch), BudgetError);
  // Alternating calls reuse their plans.
  strategy.run.memory_budget = 8 * parameters[0].bytes();
  Execution execution(strategy);
  for (int step = 0; step < 3; ++step) {
    const Report report = execution.gradients(loss, parameters, batch).report();
    CHECK(same_bits(execution.value(model, parameters, batch), expected));
    CHECK(report.plan_reused == (step > 0));
    CHECK(execution.report().plan_reused == (step > 0));
  }
}

TEST_CASE("execution: what a model looks at keeps to the budget of the call") {
  const std::vector<Tensor> parameters{Tensor::normal({256, 256}, 1, 0, 0.05)};
  const std::vector<Tensor> batch{Tensor::uniform({2, 256}, 2)};
  const Bytes sums = parameters[0].bytes();
  // The value that this model reads takes about 14 times the bytes of its parameters.
  const ModelFunction model = [](Tape& tape, std::span<const Var> p, std::span<const Var> b) {
    std::vector<Var> products;
    for (int k = 0; k < 13; ++k) products.push_back(matmul(p[0] * (1.0 + k), p[0]));
    Var all = products[0];
    for (const Var& product : products) all = matmul(all, product);
    all.value();
    return mean(matmul(b[0], p[0])) + sum(all) * 0.0 + tape.constant(Tensor::scalar(0));
  };
  const auto execution_within = [&](Bytes budget) {
    return Execution({.accumulation = 2,
                      .parallelism = ParallelMode::none,
                      .run = {.memory_budget = budget, .fuse = false}});
  };
  // The least memory for values, and for gradients in addition to their sums.
  Bytes least = 0;
  try {
    execution_within(1).value(model, parameters, batch);
  } catch (const BudgetError& error) {
    least = error.smallest_feasible();
  }
  REQUIRE(least > sums);
  Execution execution = execution_within(least + sums / 2);
  CHECK_NOTHROW(execution.value(model, parameters, batch));
  CHECK_THROWS_AS(execution.gradients(model, parameters, batch), BudgetError);
  CHECK_NOTHROW(execution.value(model, parameters, batch));
}

TEST_CASE("execution: the smallest budget that is named does, for values beside sums too") {
  const std::vector<Tensor> parameters{Tensor::normal({256, 256}, 1, 0, 0.05)};
  const std::vector<Tensor> batch{Tensor::uniform({2, 256}, 2)};
  const ModelFunction model = [](Tape&, std::span<const Var> p, std::span<const Var> b) {
    return matmul(b[0], tanh(matmul(p[0], p[0])));
  };
  for (const ExecutionMode mode :
       {ExecutionMode::lazy, ExecutionMode::eager, ExecutionMode::hybrid}) {
    ExecutionStrategy strategy{.mode = mode, .accumulation = 2, .run = {.memory_budget = 1'000}};
    CAPTURE(name_of(mode));
    const auto smallest_of = [](auto ask) {
      try {
        ask();
      } catch (const BudgetError& error) {
        return error.smallest_feasible();
      }
      return Bytes{0};
    };
    const auto value = [&] { Execution(strategy).value(model, parameters, batch); };
    const Workload workload{model, parameters, batch, false};
    const Bytes estimated = smallest_of([&] { estimate(strategy, workload); });
    // An eager mode finds the next value that does not fit only when it reaches it.
    for (int tries = 0; tries < 20; ++tries) {
      const Bytes smallest = smallest_of(value);
      if (smallest == 0) break;
      CHECK(smallest > strategy.run.memory_budget);
      strategy.run.memory_budget = smallest;
    }
    CHECK_NOTHROW(value());
    CHECK(estimated > parameters[0].bytes());
    CHECK(estimate(strategy, workload).peak <= strategy.run.memory_budget);
  }
}

TEST_CASE("a cut batch has sums where there are parts, whoever counts them") {
  const std::vector<Tensor> parameters{Tensor::zeros({10, 10})};
  const std::vector<Tensor> batch{Tensor::zeros({8, 10})};
  const auto sums = [&](const ExecutionStrategy& strategy, BatchResults results,
                        int micro_batches) {
    return cut_batch(strategy, results, parameters, batch, micro_batches, 1).sums;
  };
  CHECK(sums({}, BatchResults::gradients, 1) == 0);
  CHECK(sums({}, BatchResults::gradients, 8) >= parameters[0].bytes());
  CHECK(sums({.accumulation = 2}, BatchResults::values, 1) == 0);
  // A mode that computes while it records uses one budget for gradients and values.
  const ExecutionStrategy eager{.mode = ExecutionMode::eager, .accumulation = 2};
  CHECK(sums(eager, BatchResults::values, 1) == sums(eager, BatchResults::gradients, 2));
}

}  // namespace
}  // namespace palimpsest::budget_test
