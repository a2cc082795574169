#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "autodiff/default_options.h"
#include "autodiff/export.h"
#include "strategy/backward.h"
#include "strategy/base/execution_strategy.h"
#include "strategy/base/model.h"
#include "strategy/training/safetensors.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Runs a model as a strategy says. It keeps what the next run can reuse: plans, and the memory
/// that the strategy allows it to keep. Use it from one thread at a time.
///
/// A batch is cut into even parts. When the examples do not divide evenly, earlier parts have one
/// example more. The gradients of the parts are added in order. So the bits depend on the number of
/// parts, but not on which parts run at the same time.
///
/// The stages of a pipeline are ranges of the nodes that a model records for a micro-batch, with
/// their adjoints. Cuts are chosen so that the slowest stage takes, by estimates, little more than
/// the minimum, and few bytes cross. Micro-batches flow through the stages in 1F1B order. Stage s
/// of S, counted from 0, has at most S − s micro-batches in flight. All micro-batches are recorded
/// before any is computed, so a model may not look at values.
class Execution {
 public:
  /// Throws as `require_valid`.
  explicit Execution(ExecutionStrategy strategy = {},
                     LossReduction reduction = LossReduction::mean);
  explicit Execution(DefaultOptions) : Execution() {}
  ~Execution();
  Execution(Execution&&) noexcept;
  Execution& operator=(Execution&&) noexcept;

  /// The strategy that was given.
  const ExecutionStrategy& strategy() const;

  /// The loss of a batch and its gradients with respect to all parameters, for an `Optimizer`. The
  /// `parameters` become the parameters of the tape; their `Var`s stay valid until the next call.
  ///
  /// Auxiliary outputs that `loss` returns are computed in the same runs. When the batch is cut,
  /// the outputs of the parts are concatenated along their first axis; an output without axes
  /// becomes one with an element for each part. Before they are joined, one after the other, the
  /// execution keeps those of all parts. Both count towards the budget of a pipeline, and towards
  /// no other budget: return few and small ones where a batch is cut. Throws `ShapeError` where
  /// parts do not fit together, and `ArgumentError` where parts return different numbers of
  /// outputs.
  ///
  /// Means over counted targets divide by the counts of the whole batch: those of `cross_entropy`
  /// and `nll` with an `ignore_index`, and `weighted_mean`. A lazy mode records all parts of such a
  /// model before it computes any. Other modes call the model twice for each part, to count first.
  ///
  /// Each tensor that the model updates (`Tape::update_after_run`) changes once, at the end, by the
  /// mean of the values of all parts, weighted by their numbers of examples.
  ///
  /// The report combines all replicas and parts. It adds up the peaks of replicas and all counts.
  /// Its steps and loops are those of one part. Peaks of a lazy mode are predicted; other modes
  /// compute while they record, so their peaks are measured.
  ///
  /// In mixed f16 the loss is scaled before it is differentiated, by a `LossScaler` with default
  /// options. The returned loss and gradients are unscaled. If gradients overflow, the report says
  /// so and the step must be skipped; an `Optimizer` does that.
  ///
  /// Throws what the model throws, `ShapeError` for a loss of more than one element, and
  /// `ArgumentError` for a strategy without gradients. A batch that cannot be cut throws
  /// `ArgumentError` or `ShapeError`. So does a mean over counted targets in a body of a loop, when
  /// the batch is cut. Throws `BudgetError` when the budget is too small for a part of any size; in
  /// a lazy mode before any part is computed.
  Gradients gradients(const ModelFunction& loss, std::span<const Tensor> parameters,
                      std::span<const Tensor> batch, Where where = Where::current());

  /// The model's output for a batch, without auxiliary outputs. Each replica, or each micro-batch
  /// of a pipeline, computes one part, and the parts are concatenated along the first axis. The
  /// tensor that joins the parts of replicas does not count towards any budget. A lazy mode keeps
  /// no value longer than it is needed. Throws as `gradients`.
  Tensor value(const ModelFunction& model, std::span<const Tensor> parameters,
               std::span<const Tensor> batch, Where where = Where::current());
  /// The report of the last call of `value`.
  const Report& report() const;

  /// Everything that later results depend on, except strategy and arguments: the number of calls
  /// that succeeded, which random operations depend on, and the loss scaler of mixed f16. The
  /// entries are "gradient_calls" and "value_calls" (i64), and "scaler/scale" and so on.
  NamedTensors state() const;
  /// Throws what `load_state` would throw. Changes nothing.
  void check_state(const NamedTensors& state) const;
  /// Continues from a state of an execution with the same precision. Throws `ArgumentError` for an
  /// entry that is missing, unknown or out of range, `ShapeError` and `DTypeError` for one of
  /// another type; then nothing has changed.
  void load_state(const NamedTensors& state);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace palimpsest
