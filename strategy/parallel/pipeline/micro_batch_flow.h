#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "autodiff/export.h"
#include "strategy/backward.h"
#include "strategy/base/execution_strategy.h"
#include "strategy/base/model.h"
#include "strategy/batch_counts.h"
#include "strategy/evaluators/evaluators.h"
#include "strategy/parallel/pipeline/micro_batch.h"
#include "strategy/parallel/pipeline/pipeline_plan.h"

namespace palimpsest PALIMPSEST_EXPORT {  // for palimpsest-mpi

/// The micro-batches of a batch in a pipeline: recorded, cut into stages and planned, for gradients
/// or for values. A program that the previous batch also recorded is neither differentiated nor
/// planned again, unless it holds users' operations or loops.
class MicroBatchFlow {
 public:
  /// Records the loss to differentiate from the loss that a model returned.
  using Scale = std::function<Var(const Var& loss)>;

  /// `strategy` must outlive this object.
  MicroBatchFlow(const ExecutionStrategy& strategy, std::shared_ptr<EngineEvaluator> evaluator,
                 bool with_gradients);

  /// Records every micro-batch. Call `count` before they are run. With gradients, the values of
  /// updates become further outputs, and `updates` says what to do with them. `count` is a tape
  /// that was cleared once for each batch, so that every batch has fresh random streams. Throws
  /// what the model throws, and `ArgumentError` where it looks at values, or where micro-batches
  /// return different numbers of outputs. Throws `ShapeError` where auxiliary outputs do not fit
  /// together.
  void record(const ModelFunction& model, std::span<const Tensor> parameters,
              std::span<const Tensor> batch, const Scale& scale, const Tape& count,
              const Where& where);

  /// How stages are planned.
  struct Planning {
    int threads;               ///< per stage
    Bytes kept;                ///< bytes kept from earlier runs
    std::optional<int> stage;  ///< the only stage to plan, as in `PipelineRequest`
    FreeMemory free;
  };
  /// Cuts and plans the recorded micro-batches. Throws as `cut_loss` and `plan_pipeline`. A refusal
  /// names a budget that is enough for `count` too.
  void plan(PiecePrograms& programs, const Planning& planning);

  /// The distinct programs of the micro-batches, and each micro-batch's index among them.
  std::span<const std::shared_ptr<CutProgram>> programs() const { return programs_; }
  std::span<const std::size_t> program_of() const { return program_of_; }
  const std::shared_ptr<const PipelinePlan>& plan() const { return plan_; }
  const PipelineOrder& order() const { return *order_; }
  std::span<const Var> outcomes() const { return outcomes_; }
  /// By micro-batch: its auxiliary outputs, then the values of updates.
  std::span<const std::vector<Var>> outputs() const { return outputs_; }
  /// The updates that the first micro-batch records.
  std::span<const Tape::Update> updates() const { return updates_; }
  std::span<const std::int64_t> examples() const { return examples_; }
  /// Counts what the means of all micro-batches divide by, and makes each divide by its share.
  /// Returns the counts of the batch; none for a single micro-batch, and without gradients.
  /// `release` as for `BatchCounts::count`.
  LossCounts count(LossReduction reduction, const std::function<void()>& release);
  /// Takes the counts of a single micro-batch from the auxiliary outputs of a run, where they are
  /// the last ones. None for several.
  LossCounts take_counts(std::vector<Tensor>& outputs) const;
  /// The types of the parameters' gradients.
  std::vector<ValueType> gradient_types() const;
  /// The parameters, as recorded last.
  std::vector<Var> parameters() const;
  /// While it exists, functions of the user cannot change the tapes of the micro-batches.
  std::list<InUse::Use> use_tapes() const;

  /// The micro-batches to run. The caller fills in where results are written.
  std::vector<MicroBatch> micro_batches() const;
  /// Adds to a report what is known before running.
  void describe(Report& report) const;

 private:
  Tape& cleared(int part, const Tape& count);
  void require_outputs_fit() const;
  /// Bytes of each output for all micro-batches, joined where they are returned.
  std::vector<Bytes> bytes_of_outputs() const;
  /// The program of a micro-batch: one in `found`, one of the previous batch, or a new one.
  std::shared_ptr<CutProgram> find_or_cut(std::size_t micro_batch,
                                          std::span<const std::shared_ptr<CutProgram>> found) const;
  void find_programs();

  const ExecutionStrategy& strategy_;
  std::shared_ptr<EngineEvaluator> evaluator_;
  bool with_gradients_;
  std::unique_ptr<PipelineOrder> order_;
  std::vector<std::unique_ptr<Tape>> tapes_;  // by micro-batch
  std::vector<Var> outcomes_;                 // the computed counterparts of the recorded results
  std::vector<std::vector<Var>> outputs_;     // likewise, by micro-batch
  std::vector<Tape::Update> updates_;
  std::vector<std::int64_t> examples_;
  BatchCounts counts_;
  std::optional<RecordedCounts> own_counts_;  // of a single micro-batch
  bool has_other_terms_ = false;
  std::vector<std::shared_ptr<CutProgram>> programs_;
  std::vector<std::size_t> program_of_;
  std::shared_ptr<const PipelinePlan> plan_;
  bool plan_reused_ = false;
  double planning_seconds_ = 0;
};

}  // namespace palimpsest
