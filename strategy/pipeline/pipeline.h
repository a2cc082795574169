#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "strategy/execution/execution.h"
#include "strategy/pieces/pieces_forecast.h"
#include "strategy/pipeline/pipeline_runner.h"

namespace palimpsest {

/// Runs a model in stages, through which micro-batches flow, as `Execution` does with
/// `ParallelMode::pipeline`. Every micro-batch is recorded before any is computed; what was
/// recorded before is neither differentiated nor planned again.
class Pipeline {
 public:
  Pipeline(const ExecutionStrategy& strategy, LossReduction reduction);

  /// Records the loss that is differentiated in place of the one that a model made.
  using Scale = std::function<Var(const Var& loss)>;
  /// With the bits of as many micro-batches one after the other. Throws as `Execution::gradients`,
  /// and `ArgumentError` for a model that looks at values while it records.
  Gradients gradients(const ModelFunction& loss, std::span<const Tensor> parameters,
                      std::span<const Tensor> batch, const Scale& scale);
  /// One micro-batch behind the other along the first axis. Throws the same.
  Tensor value(const ModelFunction& model, std::span<const Tensor> parameters,
               std::span<const Tensor> batch, Report& report);
  /// What `gradients`, or `value`, would take, without computing anything. Throws the same.
  PiecesForecast forecast(const ModelFunction& model, std::span<const Tensor> parameters,
                          std::span<const Tensor> batch, const Scale& scale, bool with_gradients);

 private:
  /// Gradients, or values, of micro-batches: what is used again when they are recorded again.
  struct Flow {
    Tape count;  // cleared as often as there were batches: streams are fresh for each
    std::vector<std::unique_ptr<Tape>> tapes;  // by micro-batch
    std::vector<Var> outcomes;                 // what is computed in place of what was recorded
    std::vector<std::int64_t> examples;
    std::vector<std::shared_ptr<CutProgram>> programs;  // that differ
    std::vector<std::size_t> program_of;                // by micro-batch
    std::unique_ptr<PipelineOrder> order;
    std::shared_ptr<const PipelinePlan> plan;
    bool plan_reused = false;
    double planning_seconds = 0;
  };

  Tape& cleared(Flow& flow, int part) const;
  void record(Flow& flow, const ModelFunction& model, std::span<const Tensor> parameters,
              std::span<const Tensor> batch, const Scale& scale, bool with_gradients);
  void find_programs(Flow& flow, bool with_gradients);
  void plan(Flow& flow, bool with_gradients);
  /// Records micro-batches and plans how they run.
  Flow& prepare(const ModelFunction& model, std::span<const Tensor> parameters,
                std::span<const Tensor> batch, const Scale& scale, bool with_gradients);
  std::vector<MicroBatch> micro_batches(const Flow& flow) const;
  Report run(const Flow& flow, std::span<const MicroBatch> batches,
             const PipelineRunner::TakeGradient& take);

  ExecutionStrategy strategy_;
  LossReduction reduction_;
  int threads_;
  int threads_of_stage_;
  std::shared_ptr<EngineEvaluator> evaluator_;
  PiecePrograms programs_;
  PipelineRunner runner_;
  Flow gradients_;
  Flow values_;
};

}  // namespace palimpsest
