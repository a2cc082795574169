#pragma once

#include "strategy/base/execution_strategy.h"

namespace palimpsest {

/// How a strategy has a batch executed: what runs at once, what one after the other, and with which
/// options.
struct BatchCut {
  int replicas = 1;
  int micro_batches = 1;
  Bytes sums = 0;      ///< for sums of gradients, beside what the replicas take
  RunOptions options;  ///< of each replica

  int parts() const { return replicas * micro_batches; }
};

/// What is wanted of a batch.
enum class Wanted : std::uint8_t { gradients, values };

/// For a batch on so many threads. Values have no sums; but what computes while it records has one
/// budget for both, which leaves room for them. Throws as `examples_of`.
BatchCut cut_batch(const ExecutionStrategy& strategy, Wanted wanted,
                   std::span<const Tensor> parameters, std::span<const Tensor> batch,
                   int micro_batches, int threads);

/// For a budget that is too small for one of the replicas: the error that names one that would do
/// for all of them.
BudgetError refusal_of_all(const BatchCut& cut, Bytes budget, const BudgetError& of_one);

}  // namespace palimpsest
