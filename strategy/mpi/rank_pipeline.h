#pragma once

#include <vector>

#include "strategy/base/part_outputs.h"
#include "strategy/mpi/distributed_execution.h"
#include "strategy/mpi/stage_exchange.h"
#include "strategy/parallel/pipeline/micro_batch_flow.h"
#include "strategy/parallel/pipeline/micro_batch_sums.h"
#include "strategy/parallel/pipeline/pipeline_runner.h"
#include "strategy/training/loss_scaler.h"

namespace palimpsest {

/// Runs a model whose stages are ranks. Every rank records all micro-batches and cuts them in the
/// same way. Each plans and runs its own stage, and at the end gives the others the gradients that
/// it made.
///
/// Ranks meet twice. First when each knows what it will compute and has the memory for it, or has
/// failed before that. Then when all messages have been exchanged; a rank that failed in between
/// has told those that wait for it. Memory for the end is allocated before the second meeting.
class RankPipeline {
 public:
  /// `strategy` and `options` must outlive this object. There are as many stages as ranks.
  RankPipeline(RankLink& link, const ExecutionStrategy& strategy, const DistributedOptions& options,
               int threads);
  RankPipeline(const RankPipeline&) = delete;
  RankPipeline& operator=(const RankPipeline&) = delete;

  struct Input {
    const ModelFunction& loss;
    std::span<const Tensor> parameters;
    std::span<const Tensor> batch;
    bool verifies;       ///< whether to compare parameters over ranks
    const Tape& count;   ///< cleared once more than there were steps
    LossScaler* scaler;  ///< null if losses are not scaled
    Where where;         ///< the line of the user's call
  };
  /// Throws the failure of this rank, or `RankError`.
  Gradients step(const Input& input);
  /// The reports of all ranks, from the last step in which no rank failed.
  std::vector<RankReport> take_reports() { return std::move(reports_); }

 private:
  /// The results of a step, which all ranks get.
  struct Step {
    Meter outputs;
    MicroBatchSums sums;
    std::vector<std::vector<Tensor>> auxiliary;  // outputs, by micro-batch
    PartOutputs::Joined joined;                  // of all micro-batches
    std::vector<MicroBatch> micro_batches;
    std::vector<double> own_losses;  // by micro-batch, those made on this rank
    std::vector<double> losses;      // by micro-batch, on all ranks
    Tensor loss;
    std::vector<Gradients::Entry> entries;
    Report report;
    LossCounts counts;
    std::int64_t examples;
  };

  Step prepare(const Input& input);
  void agree(const Input& input, std::exception_ptr failure);
  std::vector<std::string> options_in_lines(const Input& input) const;
  RankWords words_before(const Input& input) const;
  std::uint64_t digest() const;
  void append_program_lines(std::vector<std::string>& lines) const;
  void share_outputs(Step& step);
  void prepare_end(Step& step);
  void share(Step& step);
  double share_losses(Step& step);
  void share_report(Report& report, std::int64_t examples);

  RankLink& link_;
  const ExecutionStrategy& strategy_;
  const DistributedOptions& options_;
  int threads_;
  MicroBatchFlow flow_;
  PiecePrograms programs_;
  PipelineRunner runner_;
  StageExchange exchange_;
  double agreeing_ = 0;
  std::vector<RankReport> reports_;
};

}  // namespace palimpsest
