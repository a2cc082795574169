#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "checkpoint/arena.h"
#include "strategy/loops/step_program.h"
#include "strategy/parallel/pipeline/micro_batch.h"
#include "strategy/parallel/pipeline/pipeline_plan.h"
#include "strategy/parallel/pipeline/stage_messages.h"

namespace palimpsest {

/// Runs planned pipelines, tasks of different stages at once and those of one stage one after the
/// other, and keeps their memory for the next run.
class PipelineRunner {
 public:
  /// A stage's work is done by `threads_of_stage` threads, all of it by `threads`.
  PipelineRunner(int stages, int threads, int threads_of_stage);
  ~PipelineRunner();

  Bytes kept() const { return block_.size(); }

  /// Takes the gradient of a parameter in a micro-batch: in their order for each parameter, for
  /// parameters of different stages at once.
  using TakeGradient =
      std::function<void(int micro_batch, std::size_t parameter, std::byte* gradient)>;

  /// Runs what `plan` says, until all is done or a task throws. Then no other begins, and the
  /// exception, which says in which stage it was thrown where it is an error of use, is passed on
  /// when those that had begun have ended. Returns what was measured and what was done;
  /// measured peaks are of the pipeline's own memory, outputs not among it.
  Report run(const std::shared_ptr<const PipelinePlan>& plan, const PipelineOrder& order,
             std::span<const MicroBatch> micro_batches, const TakeGradient& take);
  /// The same of the stage that `plan` is for, others being other processes'. Returns where one of
  /// these failed, too, with results that are of no use; a failure here is passed on when all
  /// messages have come and gone. The plan is one that was prepared. The timeline is that of the
  /// stage.
  Report run_stage(StageMessages& messages, const PipelinePlan& plan, const PipelineOrder& order,
                   std::span<const MicroBatch> micro_batches, const TakeGradient& take);
  /// Takes the memory that runs of `plan` need, as `run` does itself.
  void prepare(const std::shared_ptr<const PipelinePlan>& plan);
  /// Calls `f` where the threads of the pipeline work.
  void execute(const std::function<void()>& f);

 private:
  class Run;
  struct Threads;

  StepRunner& runner(const PlacedPiece& placed) {
    return runners_.at({placed.piece.stage, placed.program.get()});
  }

  std::unique_ptr<Threads> threads_;
  Meter meter_;
  Arena block_;
  std::shared_ptr<const PipelinePlan> prepared_;
  std::map<std::pair<int, const StepProgram*>, StepRunner> runners_;  // of its programs
};

}  // namespace palimpsest
