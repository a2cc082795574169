#pragma once

#include <vector>

#include "strategy/backward.h"
#include "strategy/base/execution_strategy.h"
#include "strategy/base/model.h"
#include "strategy/parallel/partition/pieces_forecast.h"
#include "strategy/parallel/pipeline/micro_batch_flow.h"
#include "strategy/parallel/pipeline/pipeline_runner.h"

namespace palimpsest {

/// Runs a model in stages, through which micro-batches flow, as `Execution` does with
/// `ParallelMode::pipeline`. Every micro-batch is recorded before any is computed. Programs
/// recorded before are neither differentiated nor planned again.
class Pipeline {
 public:
  Pipeline(const ExecutionStrategy& strategy, LossReduction reduction);
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  using Scale = MicroBatchFlow::Scale;
  /// The bits are those of the same micro-batches run in sequence. Throws as
  /// `Execution::gradients`, and `ArgumentError` for a model that looks at values while it records.
  Gradients gradients(const ModelFunction& loss, std::span<const Tensor> parameters,
                      std::span<const Tensor> batch, const Scale& scale, const Where& where);
  /// The values of all micro-batches, concatenated along the first axis. Throws as `gradients`.
  Tensor value(const ModelFunction& model, std::span<const Tensor> parameters,
               std::span<const Tensor> batch, Report& report, const Where& where);
  /// Forecasts `gradients` or `value` without computing anything. Throws as they do.
  PiecesForecast forecast(const ModelFunction& model, std::span<const Tensor> parameters,
                          std::span<const Tensor> batch, const Scale& scale, bool with_gradients,
                          const Where& where);

  /// Tapes that were cleared once per batch of gradients, or of values.
  Tape& gradient_count() { return gradients_.count; }
  Tape& value_count() { return values_.count; }

 private:
  /// Batches of gradients, or of values.
  struct Batches {
    MicroBatchFlow flow;
    Tape count{};  // cleared once per batch
  };

  /// Records micro-batches and plans how they run.
  void prepare(Batches& batches, const ModelFunction& model, std::span<const Tensor> parameters,
               std::span<const Tensor> batch, const Scale& scale, const Where& where);
  /// `outputs` counts the bytes of the results.
  Report run(const MicroBatchFlow& flow, std::span<const MicroBatch> micro_batches,
             const PipelineRunner::TakeGradient& take, const Meter& outputs);

  ExecutionStrategy strategy_;
  LossReduction reduction_;
  int threads_;
  int threads_of_stage_;
  std::shared_ptr<EngineEvaluator> evaluator_;
  PiecePrograms programs_;
  PipelineRunner runner_;
  Batches gradients_;
  Batches values_;
};

}  // namespace palimpsest
