#include "strategy/execution/batch_cut.h"

#include <algorithm>
#include <string>

#include "strategy/base/batch_parts.h"
#include "strategy/training/gradient_sums.h"

namespace palimpsest {
namespace {

Bytes sum_bytes(std::span<const Tensor> parameters) {
  Bytes bytes = 0;
  for (const Tensor& parameter : parameters) {
    bytes += sum_bytes(ValueType{parameter.shape(), parameter.dtype()});
  }
  return bytes;
}

}  // namespace

BatchCut cut_batch(const ExecutionStrategy& strategy, BatchResults results,
                   std::span<const Tensor> parameters, std::span<const Tensor> batch,
                   int micro_batches, int threads) {
  BatchCut cut{strategy.replicas(), micro_batches, 0, strategy.run_options()};
  if (strategy.workers == 0 && cut.replicas > 1) {
    // No more replicas than examples.
    const std::int64_t examples = examples_of(batch) / micro_batches;
    cut.replicas = static_cast<int>(std::clamp<std::int64_t>(examples, 1, cut.replicas));
  }
  const bool leaves_room =
      results == BatchResults::gradients || strategy.mode != ExecutionMode::lazy;
  const int most_parts = cut.replicas * std::max(micro_batches, strategy.accumulation);
  if (most_parts > 1 && leaves_room && strategy.gradient != GradientMode::none) {
    cut.sums = sum_bytes(parameters);
  }
  if (strategy.run.memory_budget != unlimited) {
    cut.options.memory_budget =
        std::max<Bytes>(0, strategy.run.memory_budget - cut.sums) / cut.replicas;
  }
  cut.options.threads = std::max(1, threads / cut.replicas);
  return cut;
}

BudgetError refusal_of_all(const BatchCut& cut, Bytes budget, const BudgetError& of_one) {
  const Bytes all = of_one.smallest_feasible() * cut.replicas + cut.sums;
  return {"[execution] running " + std::to_string(cut.replicas) +
              " parts of a batch at once, with gradient sums of " + std::to_string(cut.sums) +
              " bytes, needs a budget of " + std::to_string(all) + " bytes, not " +
              std::to_string(budget) + "; for one part: " + of_one.what(),
          budget, all};
}

}  // namespace palimpsest
