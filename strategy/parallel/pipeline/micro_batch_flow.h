#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "strategy/backward.h"
#include "strategy/base/execution_strategy.h"
#include "strategy/base/model.h"
#include "strategy/evaluators/evaluators.h"
#include "strategy/parallel/pipeline/micro_batch.h"
#include "strategy/parallel/pipeline/pipeline_plan.h"

namespace palimpsest {

/// Gradients, or values, of micro-batches that go through a pipeline: recorded, cut into stages and
/// planned. What was recorded in the batch before is neither differentiated nor planned again, but
/// for programs that hold users' operations or loops.
class MicroBatchFlow {
 public:
  /// Records the loss that is differentiated in place of the one that a model made.
  using Scale = std::function<Var(const Var& loss)>;

  /// `strategy` outlives it.
  MicroBatchFlow(const ExecutionStrategy& strategy, std::shared_ptr<EngineEvaluator> evaluator,
                 bool with_gradients);

  /// Records every micro-batch. `count` is a tape that was cleared as often as there were batches:
  /// streams of random numbers are fresh for each. Throws what the model throws, and
  /// `ArgumentError` where it looks at values.
  void record(const ModelFunction& model, std::span<const Tensor> parameters,
              std::span<const Tensor> batch, const Scale& scale, const Tape& count);

  /// How stages are planned.
  struct Planning {
    int threads;               ///< of a stage
    Bytes kept;                ///< that runs before left
    std::optional<int> stage;  ///< the only one, as in `PipelineRequest`
    FreeMemory free;
  };
  /// Cuts and plans what was recorded. Throws as `cut_loss` and `plan_pipeline`.
  void plan(PiecePrograms& programs, const Planning& planning);

  /// The programs that micro-batches are, those alike once, and that of each.
  std::span<const std::shared_ptr<CutProgram>> programs() const { return programs_; }
  std::span<const std::size_t> program_of() const { return program_of_; }
  const std::shared_ptr<const PipelinePlan>& plan() const { return plan_; }
  const PipelineOrder& order() const { return *order_; }
  std::span<const Var> outcomes() const { return outcomes_; }
  std::span<const std::int64_t> examples() const { return examples_; }
  /// Of the parameters' gradients.
  std::vector<ValueType> gradient_types() const;
  /// The parameters, as they were recorded last.
  std::vector<Var> parameters() const;

  /// What goes through the stages; places are for the caller to fill in.
  std::vector<MicroBatch> micro_batches() const;
  /// Says in a report what is known without having run.
  void describe(Report& report) const;

 private:
  Tape& cleared(int part, const Tape& count);
  /// The program of a micro-batch: one of those found, of those of the batch before, or a new one.
  std::shared_ptr<CutProgram> find_or_cut(std::size_t micro_batch,
                                          std::span<const std::shared_ptr<CutProgram>> found) const;
  void find_programs();

  const ExecutionStrategy& strategy_;
  std::shared_ptr<EngineEvaluator> evaluator_;
  bool with_gradients_;
  std::unique_ptr<PipelineOrder> order_;
  std::vector<std::unique_ptr<Tape>> tapes_;  // by micro-batch
  std::vector<Var> outcomes_;                 // what is computed in place of what was recorded
  std::vector<std::int64_t> examples_;
  std::vector<std::shared_ptr<CutProgram>> programs_;
  std::vector<std::size_t> program_of_;
  std::shared_ptr<const PipelinePlan> plan_;
  bool plan_reused_ = false;
  double planning_seconds_ = 0;
};

}  // namespace palimpsest
