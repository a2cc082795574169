// Budgets of executions whose calls need different shares of them.
#include <oneapi/tbb/global_control.h>

#include "tests/strategy/execution/runs.h"

namespace palimpsest {
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
    return mean(model(tape, p, b));
  };
  ExecutionStrategy strategy{.memory_budget = parameters[0].bytes(),
                             .parallelism = ParallelMode::data_parallel,
                             .workers = 2};
  Execution values(strategy);
  const Tensor expected = values.value(model, parameters, batch);
  CHECK(values.report().predicted_peak <= strategy.memory_budget);
  CHECK(estimate(strategy, {model, parameters, batch, false}).peak ==
        values.report().predicted_peak);
  CHECK_THROWS_AS(values.gradients(loss, parameters, batch), BudgetError);
  // In turns, neither is planned again for the other.
  strategy.memory_budget = 8 * parameters[0].bytes();
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
  // What it looks at takes some 14 times the bytes of its parameters.
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
                      .memory_budget = budget,
                      .parallelism = ParallelMode::none,
                      .fusion = false});
  };
  // The least that values need, and gradients beside their sums.
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

}  // namespace
}  // namespace palimpsest
