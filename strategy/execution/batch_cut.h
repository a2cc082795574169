#pragma once

#include "strategy/execution/execution_strategy.h"

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

/// For gradients, or values, of a batch on so many threads. Throws as `examples_of`.
BatchCut cut_batch(const ExecutionStrategy& strategy, std::span<const Tensor> parameters,
                   std::span<const Tensor> batch, int micro_batches, int threads);

/// For a budget that is too small for one of the replicas: the error that names one that would do
/// for all of them.
BudgetError refusal_of_all(const BatchCut& cut, Bytes budget, const BudgetError& of_one);

}  // namespace palimpsest
