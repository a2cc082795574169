#pragma once

#include <oneapi/tbb/task_arena.h>

#include <exception>
#include <optional>
#include <vector>

#include "strategy/base/part_outputs.h"
#include "strategy/base/run_observer.h"
#include "strategy/batch_counts.h"
#include "strategy/execution/recorded_parts.h"
#include "strategy/mpi/distributed_execution.h"
#include "strategy/mpi/rank_gradients.h"
#include "strategy/mpi/rank_updates.h"
#include "strategy/mpi/tape_digest.h"
#include "strategy/training/loss_scaler.h"

namespace palimpsest {

/// One step of a distributed execution: the protocol that makes either all ranks compute, or none.
///
/// Ranks meet twice. Before the first meeting, each rank records its first micro-batch, counts what
/// its means divide by, and checks its budget. A rank may fail in this. They meet again when all
/// gradients have been sent; a rank that failed meanwhile has sent what it had.
/// Memory for the end is allocated before the second meeting.
class DistributedStep final : public RunObserver {
 public:
  /// The state that outlives a step.
  struct Setting {
    RankLink& link;
    const ExecutionStrategy& strategy;
    const DistributedOptions& options;
    Replica& replica;
    BatchCounts& counts;
    const Tape& count;         ///< cleared once more than there were steps
    tbb::task_arena& arena;    ///< with the threads of a run
    RankGradients* gradients;  ///< null if the batch has only one part
    LossScaler* scaler;        ///< null if losses are not scaled
  };
  struct Input {
    const ModelFunction& loss;
    std::span<const Tensor> parameters;
    std::span<const Tensor> batch;  ///< the whole batch, or the shard of this rank
    bool is_whole;
    bool verifies;  ///< whether to compare parameters over ranks
    Where where;    ///< the line of the user's call
  };

  DistributedStep(const Setting& setting, const Input& input) : setting_(setting), input_(input) {}

  /// Runs the step; call it once. Throws the failure of this rank, or `RankError`.
  Gradients run();
  /// The reports of all ranks, after `run`.
  std::vector<RankReport> take_reports() { return std::move(reports_); }

  void begin() override;
  void made(std::size_t target, const Operand& value) override;
  void stepped() override;

 private:
  int micro_batches() const { return setting_.strategy.accumulation; }
  void compute();
  void cut();
  void prepare();
  void record(int micro_batch);
  void agree_before_run();
  void count();
  void compute_part(int micro_batch);
  Gradients differentiate(const LossAndOutputs& values);
  void take_outputs(std::span<const Tensor> outputs, std::int64_t examples);
  void agree(std::exception_ptr failure);
  RankWords words_before() const;
  void compare(const std::vector<RankWords>& said);
  void set_weights(const std::vector<RankWords>& said);
  void share_counts();
  std::vector<std::string> options_in_lines() const;
  void exchange(std::exception_ptr& failure);
  Gradients end(std::exception_ptr failure);
  void prepare_end();
  Report take_report();
  RankReport report_of_rank(const Report& report) const;
  std::int64_t examples_here() const;
  Gradients finish(const std::vector<RankWords>& said, Report report);

  Setting setting_;
  Input input_;
  std::optional<RecordedParts> parts_;  // the micro-batches of this rank
  std::vector<double> counts_;          // that the means of this rank divide by
  std::vector<double> counts_of_all_;   // ranks
  std::vector<double> counts_received_;
  bool has_other_terms_ = false;  // in the loss, besides these means
  bool records_again_ = false;    // the micro-batches that were recorded to be counted
  Tape* tape_ = nullptr;          // of the first micro-batch
  TapeDigest first_;
  std::uint64_t others_ = 0;  // digest of the other micro-batches' recordings
  RankUpdates updates_;
  std::size_t first_gradient_ = 1;  // among the targets of the current micro-batch's run
  PartOutputs outputs_;             // of this rank's micro-batches
  bool is_agreed_ = false;          // all ranks compute
  bool is_refused_ = false;         // no rank computes
  RankGradients::Term term_;        // of the current micro-batch
  RankWeights weights_;
  std::int64_t examples_of_all_ = 0;  // ranks
  double loss_ = 0;                   // of this rank: weighted sum over micro-batches
  std::optional<Gradients> last_;
  Tensor loss_of_all_;
  std::vector<Gradients::Entry> entries_;  // gradients of all ranks together
  std::vector<Tensor> joined_;             // auxiliary outputs of this rank
  std::optional<StagedUpdates> staged_;
  double agreeing_ = 0;
  double waiting_ = 0;
  std::vector<RankReport> reports_;
};

}  // namespace palimpsest
