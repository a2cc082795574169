#pragma once

#include "strategy/base/execution_strategy.h"

namespace palimpsest {

/// How a strategy cuts a batch: how many replicas run at the same time, how many micro-batches each
/// runs in sequence, and with which options.
struct BatchCut {
  int replicas = 1;
  int micro_batches = 1;
  Bytes sums = 0;      ///< bytes for the gradient sums, in addition to the replicas' budgets
  RunOptions options;  ///< for each replica

  int parts() const { return replicas * micro_batches; }
};

/// Which results of a batch are computed.
enum class BatchResults : std::uint8_t { gradients, values };

/// Cuts a batch for `threads` threads. Values need no gradient sums. But a mode that computes while
/// it records uses one budget for values and gradients, so that budget leaves room for the sums.
/// Throws as `examples_of`.
BatchCut cut_batch(const ExecutionStrategy& strategy, BatchResults results,
                   std::span<const Tensor> parameters, std::span<const Tensor> batch,
                   int micro_batches, int threads);

/// The error for a budget that is too small for one of the replicas. It names a budget that is
/// large enough for all of them.
BudgetError refusal_of_all(const BatchCut& cut, Bytes budget, const BudgetError& of_one);

}  // namespace palimpsest
