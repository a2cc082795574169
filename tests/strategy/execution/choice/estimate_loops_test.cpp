#include <oneapi/tbb/global_control.h>

#include <algorithm>

#include "palimpsest.h"
#include "tests/catch.h"

namespace palimpsest::estimate_loops_test {
namespace {

/// Four loops of unknown length, with other operations before and after them.
LossAndOutputs searches(Tape& tape, std::span<const Var> p, std::span<const Var> batch) {
  std::vector<Var> losses;
  for (int i = 0; i < 4; ++i) {
    const Var h = tanh(matmul(select(batch[0], 0, i), p[0]));
    const std::vector<Var> start{h, full(tape, {}, 0.0)};
    const WhileResult end = while_loop(
        start, [](std::span<const Var> s, const StepNumber&) { return s[1] < 5.5; },
        [](std::span<const Var> s, std::span<const Var>, const StepNumber&) {
          return LoopStep{{tanh(transpose(s[0])), s[1] + 1.0}};
        });
    losses.push_back(sum(sin(end.state[0])));
  }
  return LossAndOutputs(mean(stack(losses, 0)));
}

LossAndOutputs recurrent(Tape&, std::span<const Var> p, std::span<const Var> batch) {
  const Var start = select(batch[0], 0, 0);
  const Var end =
      scan(start, 40, [&](const Var& h, const StepNumber&) { return tanh(matmul(h, p[0])); });
  return LossAndOutputs(mean(square(end * sin(end))));
}

struct Steps {
  tbb::global_control control{tbb::global_control::max_allowed_parallelism, 2};
  std::vector<Tensor> parameters{Tensor::normal({5, 5}, 1)};
  std::vector<Tensor> batch{Tensor::normal({4, 5, 5}, 2)};

  Report run(const ModelFunction& model, const ExecutionStrategy& strategy) const {
    Execution execution(strategy);
    return execution.gradients(model, parameters, batch).report();
  }
  Bytes smallest(const ModelFunction& model, int threads) const {
    try {
      run(model, {.run = {.memory_budget = 1, .threads = threads}});
    } catch (const BudgetError& error) {
      return error.smallest_feasible();
    }
    return 0;
  }
};

TEST_CASE_METHOD(Steps, "estimate: steps with loops take what a planned estimate says") {
  for (const ModelFunction& model : {ModelFunction(searches), ModelFunction(recurrent)}) {
    for (const int threads : {1, 2}) {
      const Report all = run(model, {.gradient = GradientMode::full, .run = {.threads = threads}});
      const Bytes least = smallest(model, threads);
      for (const double fraction : {0.02, 0.1, 0.3, 1.0}) {
        CAPTURE(threads, fraction);
        const ExecutionStrategy strategy{.gradient = GradientMode::checkpointed,
                                         .checkpoint_fraction = fraction,
                                         .run = {.threads = threads}};
        const Estimate made =
            estimate(strategy, Workload{.model = model, .parameters = parameters, .batch = batch});
        const Report report = run(model, strategy);
        const double share = fraction * static_cast<double>(all.keep_all_peak);
        CHECK(made.is_planned);
        CHECK(made.peak == report.predicted_peak);
        CHECK(made.compute_overhead == report.compute_overhead);
        CHECK(made.keep_all_peak == report.keep_all_peak);
        // Loops that run at the same time lie apart in a run without a budget.
        CHECK(made.keep_all_peak <= all.keep_all_peak);
        CHECK(static_cast<double>(made.keep_all_peak) >=
              0.95 * static_cast<double>(all.keep_all_peak));
        CHECK(made.peak <= std::max(static_cast<Bytes>(share), least));
        CHECK(report.measured_peak <= report.predicted_peak);
      }
    }
  }
}

TEST_CASE_METHOD(Steps, "estimate: an estimate within a budget is exact where it says so") {
  int exact = 0;
  for (const ModelFunction& model : {ModelFunction(searches), ModelFunction(recurrent)}) {
    for (const int threads : {1, 2}) {
      const Bytes all = run(model, {.run = {.threads = threads}}).keep_all_peak;
      for (const Bytes budget : {smallest(model, threads), all / 2, all}) {
        CAPTURE(threads, budget);
        const ExecutionStrategy strategy{.run = {.memory_budget = budget, .threads = threads}};
        const Estimate made =
            estimate(strategy, Workload{.model = model, .parameters = parameters, .batch = batch});
        const Report report = run(model, strategy);
        CHECK(made.peak <= budget);
        CHECK(report.predicted_peak <= budget);
        CHECK(made.is_planned == (made.peak == report.predicted_peak));
        exact += made.is_planned ? 1 : 0;
      }
    }
  }
  CHECK(exact > 0);
}

}  // namespace
}  // namespace palimpsest::estimate_loops_test
