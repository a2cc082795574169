#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "autodiff/export.h"
#include "checkpoint/arena.h"
#include "strategy/parallel/pipeline/micro_batch.h"
#include "strategy/parallel/pipeline/pipeline_plan.h"
#include "strategy/parallel/pipeline/stage_messages.h"
#include "strategy/run/buffer_runner.h"

namespace palimpsest PALIMPSEST_EXPORT {  // for palimpsest-mpi

/// Runs planned pipelines, and keeps their memory for the next run. Tasks of different stages run
/// in parallel, those of one stage in sequence.
class PipelineRunner {
 public:
  /// Each stage uses `threads_of_stage` threads, all stages together `threads`.
  PipelineRunner(int stages, int threads, int threads_of_stage);
  ~PipelineRunner();

  Bytes kept() const { return block_.size(); }
  /// Returns the memory kept for the next run to the system.
  void release_memory();

  /// Receives the gradient of a parameter in a micro-batch. Calls for one parameter come in the
  /// order of the micro-batches. Calls for parameters of different stages may come in parallel.
  using TakeGradient =
      std::function<void(int micro_batch, std::size_t parameter, std::byte* gradient)>;

  /// Runs `plan` until everything is done or a task throws. After an exception no other task
  /// begins. When the running tasks have ended, the exception is passed on; a usage error names its
  /// stage. Returns the report. Measured peaks are those of the pipeline's own memory, without
  /// outputs. `options` stop and watch the run.
  Report run(const std::shared_ptr<const PipelinePlan>& plan, const PipelineOrder& order,
             std::span<const MicroBatch> micro_batches, const TakeGradient& take,
             const RunOptions& options);
  /// Runs only the stage that `plan` is for; other processes run the other stages. If another stage
  /// fails, it returns results that are of no use. If this one fails, it throws after all messages
  /// have been exchanged. Call `prepare` for the plan first. The timeline is that of the stage.
  Report run_stage(StageMessages& messages, const PipelinePlan& plan, const PipelineOrder& order,
                   std::span<const MicroBatch> micro_batches, const TakeGradient& take,
                   const RunOptions& options);
  /// Allocates the memory that runs of `plan` need. `run` does this itself.
  void prepare(const std::shared_ptr<const PipelinePlan>& plan);
  /// Calls `f` in the arena of the pipeline's threads.
  void execute(const std::function<void()>& f);

 private:
  class Run;
  struct Threads;

  BufferRunner& runner(const PlacedPiece& placed) {
    return runners_.at({placed.piece.stage, placed.program.get()});
  }

  std::unique_ptr<Threads> threads_;
  Meter meter_;
  Arena block_;
  std::shared_ptr<const PipelinePlan> prepared_;
  std::map<std::pair<int, const BufferProgram*>, BufferRunner> runners_;  // of the prepared plan's
                                                                          // programs
};

}  // namespace palimpsest
