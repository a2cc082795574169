#pragma once

#include <memory>
#include <span>
#include <vector>

#include "autodiff/export.h"
#include "strategy/execution/execution.h"
#include "strategy/mpi/rank_world.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// How ranks work together. Must be the same on all ranks.
struct DistributedOptions {
  LossReduction reduction = LossReduction::mean;
  /// Adds gradients in the order of the ranks, with the bits of one process with as many shards.
  /// Otherwise MPI chooses the order, which may be faster and may differ between machines. A
  /// pipeline always adds up the gradients of micro-batches, in their order.
  bool deterministic = false;
  /// Size of the buckets that gradients are sent in, 64 B to 1 GiB. Smaller buckets overlap more
  /// with computation, but each has a cost. A pipeline has none.
  Bytes bucket_bytes = 4_MiB;
  /// Number of steps after which parameters are compared over ranks; 0 is never. They are always
  /// compared at the start.
  int verify_every = 0;
};

/// The work of one rank in a step.
struct RankReport {
  /// Examples in its shard; for a pipeline in all micro-batches. 1 for a batch that is not cut and
  /// has no axes.
  std::int64_t examples = 0;
  /// Bytes of its gradients that were added to those of other ranks; of a pipeline stage, bytes
  /// sent to others.
  Bytes bytes = 0;
  int messages = 0;               ///< sent to others, by a pipeline stage
  int buckets = 0;                ///< number of buckets that gradients were sent in
  int started_early = 0;          ///< buckets begun before the last gradient was computed
  int ended_early = 0;            ///< buckets ended before its backward part did
  double overlapped_seconds = 0;  ///< seconds of its backward part with some bucket in progress
  /// Seconds from the end of its backward part until it had all gradients; of a pipeline stage,
  /// seconds of waiting for messages.
  double waiting_seconds = 0;
  double agreeing_seconds = 0;  ///< from its own planning until all ranks had planned
  Bytes predicted_peak = 0;     ///< as in its `Report`
  Bytes measured_peak = 0;
};

/// Runs a model on all ranks of a world, each on its shard of a batch, and adds up their gradients:
/// `Execution` over processes and machines. Gradients are sent in buckets while others are still
/// being computed. Parameters stay the same on all ranks if every rank gives the returned gradients
/// to its optimizer.
///
/// With `ParallelMode::pipeline` each rank runs one stage of the model instead, and all
/// micro-batches flow through the stages. Every rank records all micro-batches, and plans and
/// computes its own stage within its own budget. Values go from rank to rank; gradients go to all
/// ranks at the end. Loss and gradients have the bits of an `Execution` with the same
/// micro-batches.
///
/// Auxiliary outputs of a shard are those of the rank's own examples, joined as by `Execution`;
/// they are not sent to other ranks. A pipeline returns the outputs of the whole batch on all
/// ranks, and they count towards the budget of each. Each tensor that the model updates
/// (`Tape::update_after_run`) changes on all ranks at the end of a step, by the mean over the
/// examples of all ranks. So such tensors stay the same on all ranks if they were the same before;
/// give them to `broadcast` if they may not be.
///
/// All ranks must call every member function except accessors, in one order. A call throws on all
/// ranks or on none, as `RankWorld` says. After a step that throws, parameters are unchanged, with
/// one exception: those given to the first step may have the elements of rank 0 by then. The next
/// step draws the random numbers that the failed step would have drawn.
///
/// Before anything of a step is computed, ranks compare what they recorded for the first
/// micro-batch: operations, their inputs, dtypes and numbers of axes. If all shards have equal size
/// they also compare shapes. Attributes are not compared: ranks do not notice a dropout of 0.3 on
/// one and 0.5 on another, or different added numbers. Later micro-batches are compared, without
/// shapes, after all have been computed.
///
/// In other modes than lazy, and where a model looks at values, something is computed before ranks
/// compare and check budgets. A pipeline is always lazy; it compares all micro-batches, with their
/// gradients, before computing.
class DistributedExecution {
 public:
  /// `world` must outlive this object. The strategy is that of one rank, with its own budget and
  /// threads. Without a number of threads, ranks that may use the same cores divide them. A
  /// pipeline has as many stages as there are ranks; `stages` must be that number or 0.
  ///
  /// Throws `ArgumentError` for a strategy that is not valid, computes no gradients, has replicas
  /// or devices, or has another number of stages. Ranks take the place of replicas. Also throws it
  /// for options that are out of range or do not apply.
  explicit DistributedExecution(RankWorld& world, ExecutionStrategy strategy = {},
                                DistributedOptions options = {});
  ~DistributedExecution();
  DistributedExecution(DistributedExecution&&) noexcept;
  DistributedExecution& operator=(DistributedExecution&&) noexcept;

  /// Copies the parameters of rank 0 to all ranks, in place, and compares them. The first step does
  /// it too, unless this was called before. Throws `RankError` naming the first parameter whose
  /// type differs, and its rank.
  void broadcast(std::span<const Tensor> parameters);
  /// Compares the parameters of all ranks by a 64-bit hash of their bits. Throws `RankError` naming
  /// the first parameter that differs from that of rank 0, and its rank.
  void verify(std::span<const Tensor> parameters);

  /// The loss of a batch and its gradients, as `Execution` computes them with ranks in place of
  /// replicas. Every rank gives the whole batch. Batches of different sizes are a `RankError` on
  /// all ranks. Steps that compare parameters also compare the contents of the batches. With
  /// `deterministic` and one micro-batch they also have the bits of `Execution`. Gradients and loss
  /// are the same on all ranks.
  ///
  /// Gradients and loss count towards the rank's budget. So does the receive buffer or, without
  /// `deterministic`, what MPI takes for buckets in progress: 4 buckets or 1 MiB, whichever is
  /// more. A world of one rank without micro-batches takes no more than `Execution`.
  ///
  /// The report is that of this rank. In a pipeline it has the stages of all ranks and their
  /// timeline, each by its own clock. Throws as `Execution::gradients`, and `RankError`.
  Gradients gradients(const ModelFunction& loss, std::span<const Tensor> parameters,
                      std::span<const Tensor> batch, Where where = Where::current());
  /// Likewise, but every rank gives its own shard of the batch. Shards may differ in size. Throws
  /// `ArgumentError` for a shard without examples, and for a pipeline, which has no shards.
  Gradients gradients_of_shard(const ModelFunction& loss, std::span<const Tensor> parameters,
                               std::span<const Tensor> shard, Where where = Where::current());

  /// Everything that later steps depend on, except strategy, options and arguments. That is the
  /// number of steps, the order in which gradients are stored, and the loss scaler. The entries
  /// are "steps" (i64), "gradient_order" (i64, by place) and "scaler/scale" and so on. The state is
  /// the same on all ranks: one rank may save it, and all load it. These three functions do not
  /// wait for other ranks.
  NamedTensors state() const;
  /// Throws what `load_state` would throw. Changes nothing.
  void check_state(const NamedTensors& state) const;
  /// Continues from a state of an execution with the same strategy and as many ranks. The next step
  /// has the bits that it would have had without an interruption, unless MPI itself adds in another
  /// order in another run; with `deterministic` it cannot. That step throws `RankError` where ranks
  /// have loaded different states. Throws as `Execution::load_state`; then nothing has changed.
  void load_state(const NamedTensors& state);

  /// The reports of all ranks, from the last step in which no rank failed.
  std::span<const RankReport> reports() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace palimpsest
