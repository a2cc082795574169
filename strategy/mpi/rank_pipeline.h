#pragma once

#include <vector>

#include "strategy/mpi/distributed_execution.h"
#include "strategy/mpi/stage_exchange.h"
#include "strategy/parallel/pipeline/micro_batch_flow.h"
#include "strategy/parallel/pipeline/micro_batch_sums.h"
#include "strategy/parallel/pipeline/pipeline_runner.h"
#include "strategy/training/loss_scaler.h"

namespace palimpsest {

/// Runs a model in stages that are ranks. All of them record all micro-batches and cut them alike;
/// each plans and runs its own stage, and in the end gives the others the gradients that it made.
///
/// Ranks meet when each knows what it will compute and has the memory for it, or has failed by
/// then; and again when all messages have been sent and taken, a rank that failed in between having
/// told those that wait for its own. What takes memory for the end is made before they meet the
/// second time.
class RankPipeline {
 public:
  /// `strategy` and `options` outlive it; there are as many stages as ranks.
  RankPipeline(RankLink& link, const ExecutionStrategy& strategy, const DistributedOptions& options,
               int threads);
  RankPipeline(const RankPipeline&) = delete;
  RankPipeline& operator=(const RankPipeline&) = delete;

  struct Input {
    const ModelFunction& loss;
    std::span<const Tensor> parameters;
    std::span<const Tensor> batch;
    bool verifies;       ///< compares parameters over ranks
    const Tape& count;   ///< cleared once more than there were steps
    LossScaler* scaler;  ///< null where no loss is scaled
  };
  /// Throws what failed here, or `RankError`.
  Gradients step(const Input& input);
  /// Of all ranks, in the last step that none failed in.
  std::vector<RankReport> take_reports() { return std::move(reports_); }

 private:
  /// What a step computes, and gives all ranks.
  struct Step {
    Meter outputs;
    MicroBatchSums sums;
    std::vector<MicroBatch> micro_batches;
    std::vector<double> own_losses;  // by micro-batch, of those made here
    std::vector<double> losses;      // of all
    Tensor loss;
    std::vector<Gradients::Entry> entries;
    Report report;
    std::int64_t examples;
  };

  Step prepare(const Input& input);
  void agree(const Input& input, std::exception_ptr failure);
  std::vector<std::string> options_in_lines(const Input& input) const;
  RankWords words_before(const Input& input) const;
  std::uint64_t digest() const;
  void append_program_lines(std::vector<std::string>& lines) const;
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
