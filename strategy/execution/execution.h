#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "strategy/backward.h"
#include "strategy/base/execution_strategy.h"
#include "strategy/base/model.h"

namespace palimpsest {

/// Runs a model as a strategy says. Keeps what the next run can use again: plans, and the memory
/// that the strategy lets it keep. For one thread at a time.
///
/// A batch that a strategy cuts into parts is cut into even ones, earlier ones larger by an example
/// where it does not come out. Their gradients are added in the order of the parts: the bits depend
/// on how many parts there are, not on which of them run at once.
///
/// The stages of a pipeline are ranges of what a model records for a micro-batch, with their
/// adjoints, cut such that the longest takes little more than it has to, by estimates, and few
/// bytes cross. Micro-batches flow through them in the order 1F1B, and stage s of S, from 0, has at
/// most S − s in flight. All are recorded before one is computed; a model may not look at values.
class Execution {
 public:
  /// Throws as `require_valid`.
  explicit Execution(ExecutionStrategy strategy = {},
                     LossReduction reduction = LossReduction::mean);
  ~Execution();
  Execution(Execution&&) noexcept;
  Execution& operator=(Execution&&) noexcept;

  const ExecutionStrategy& strategy() const;

  /// The loss of a batch and its gradients with respect to all parameters, for an `Optimizer`: the
  /// tensors given are the parameters of the tape, whose `Var`s are there until the next call. The
  /// report adds up what replicas and parts took, peaks of replicas and counts of all; its steps
  /// and loops are those of one part. Peaks of a lazy mode are predicted; what other modes compute
  /// while they record is not, and measured.
  ///
  /// In mixed f16 the loss that is differentiated is scaled, as `LossScaler` does with the options
  /// it has by default; the gradients and the loss returned are not. Where gradients overflow, as
  /// the report says, the step is to be left out: an `Optimizer` does that.
  ///
  /// Throws what the model throws, `ShapeError` for a loss of more than one element,
  /// `ArgumentError` for a strategy without gradients and, like `ShapeError`, for a batch that
  /// cannot be cut; `BudgetError`, in a lazy mode before a replica computes anything.
  Gradients gradients(const ModelFunction& loss, std::span<const Tensor> parameters,
                      std::span<const Tensor> batch);

  /// What the model makes of a batch, one part for each replica or each micro-batch of a pipeline,
  /// put together along the first axis; of replicas, in a tensor that no budget counts. In a lazy
  /// mode nothing is kept that is not needed any more. Throws the same.
  Tensor value(const ModelFunction& model, std::span<const Tensor> parameters,
               std::span<const Tensor> batch);
  /// Of the last call of `value`.
  const Report& report() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace palimpsest
