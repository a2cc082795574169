#pragma once

#include <memory>
#include <span>
#include <vector>

#include "strategy/execution/execution.h"
#include "strategy/mpi/rank_world.h"

namespace palimpsest {

/// How ranks work together; the same on all of them.
struct DistributedOptions {
  LossReduction reduction = LossReduction::mean;
  /// Adds gradients in the order of the ranks: the bits of one process with as many shards.
  /// Without, in an order that MPI chooses, which may be faster and may differ from machine to
  /// machine. A pipeline adds up those of micro-batches, in their order in any case.
  bool deterministic = false;
  /// Gradients are sent in buckets of so many bytes, 64 B to 1 GiB: more begin while others are
  /// being computed, at more cost each. A pipeline has none.
  Bytes bucket_bytes = 4_MiB;
  /// Steps after which parameters are compared over ranks, besides at the start; 0 is never.
  int verify_every = 0;
};

/// What one rank did in a step.
struct RankReport {
  /// In its shard, or in all micro-batches; 1 in a batch without axes, which nobody cuts.
  std::int64_t examples = 0;
  /// Of its gradients, that were added to those of other ranks; of a stage, in messages to others.
  Bytes bytes = 0;
  int messages = 0;       ///< of a stage, to others
  int buckets = 0;        ///< that gradients were sent in
  int started_early = 0;  ///< of these, begun while gradients of others were still to be computed
  int ended_early = 0;    ///< of these, ended before its backward part had
  double overlapped_seconds = 0;  ///< of its backward part, in which some bucket was under way
  /// After its backward part, until it had all gradients; of a stage, for messages to come or go.
  double waiting_seconds = 0;
  double agreeing_seconds = 0;  ///< until all ranks had planned, before it computed anything
  Bytes predicted_peak = 0;     ///< as in its `Report`
  Bytes measured_peak = 0;
};

/// Runs a model on all ranks of a world, each on its shard of a batch, and adds their gradients up:
/// `Execution` over processes and machines. Gradients are sent in buckets, while others are still
/// being computed. Parameters stay the same on all ranks if all give their optimizers what they get
/// here.
///
/// With `ParallelMode::pipeline` each rank runs one stage of the model instead, through which all
/// micro-batches flow: all ranks record all of them, and each plans and computes its own stage, in
/// the budget that it has for that. Values go from rank to rank, and gradients to all in the end.
/// Loss and gradients have the bits of an `Execution` with the same micro-batches.
///
/// Every member function but accessors is called by all ranks, in one order, and throws on all or
/// none, as `RankWorld` says. Where a step throws, parameters are what they were, but that those
/// given to the first one may have the elements of rank 0 by then; what comes next draws the random
/// numbers that the step would have drawn.
///
/// Before anything of a step is computed ranks compare what they recorded for the first
/// micro-batch: operations, what they read, dtypes and numbers of axes, where all shards are
/// equally large also shapes. Attributes are not compared: a dropout of 0.3 is to ranks what one of
/// 0.5 is, or a number that is added. What they recorded for later micro-batches is compared,
/// without shapes, when all have been computed. In other modes than lazy, and where a model looks
/// at values, something is computed before ranks compare, and look at budgets. A pipeline is always
/// lazy, and compares all micro-batches, their gradients too, before.
class DistributedExecution {
 public:
  /// `world` outlives it. The strategy is that of one rank: budget and threads are its own, and
  /// without a number of threads ranks that may use the same cores share them out. A
  /// pipeline has as many stages as there are ranks, which `stages` says or, with 0, leaves to the
  /// world. Throws `ArgumentError` for a strategy that is not valid, makes no gradients, has
  /// replicas, which is what ranks are, or devices, or another number of stages; and for options
  /// out of range, or without use.
  explicit DistributedExecution(RankWorld& world, ExecutionStrategy strategy = {},
                                DistributedOptions options = {});
  ~DistributedExecution();
  DistributedExecution(DistributedExecution&&) noexcept;
  DistributedExecution& operator=(DistributedExecution&&) noexcept;

  /// Gives the parameters of all ranks the elements that they have on rank 0, in place, and
  /// compares them. The first step does it too, unless this was called before. Throws `RankError`
  /// naming the first parameter that differs in type, and its rank.
  void broadcast(std::span<const Tensor> parameters);
  /// Compares the parameters of all ranks, bit by bit as far as 64 bits tell. Throws `RankError`
  /// naming the first that differs from that of rank 0, and its rank.
  void verify(std::span<const Tensor> parameters);

  /// The loss of a batch, of which every rank is given the whole, and its gradients: those of
  /// `Execution` with ranks for replicas, and with `deterministic` and one micro-batch, its bits.
  /// Gradients and loss are the same on all ranks. They count into the budget of the rank, with
  /// what is received or, without `deterministic`, what MPI takes for buckets under way, 4 of them
  /// or 1 MiB; a world of one rank without micro-batches takes nothing more than `Execution`. The
  /// report is that of the rank but, of a pipeline, for its stages and their timeline: each tells
  /// of its tasks by its own clock. Throws as `Execution::gradients`, and `RankError`.
  Gradients gradients(const ModelFunction& loss, std::span<const Tensor> parameters,
                      std::span<const Tensor> batch);
  /// The same of a batch, of which every rank is given its shard; these may differ in size. Throws
  /// `ArgumentError` for a shard without examples, and of a pipeline, which has no shards.
  Gradients gradients_of_shard(const ModelFunction& loss, std::span<const Tensor> parameters,
                               std::span<const Tensor> shard);

  /// What each rank did in the last step that none failed in.
  std::span<const RankReport> reports() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace palimpsest
