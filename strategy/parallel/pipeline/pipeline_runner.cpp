#include "strategy/parallel/pipeline/pipeline_runner.h"

#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <string>

#include "strategy/base/named_errors.h"
#include "strategy/run/report_of.h"
#include "strategy/run/run_control_of.h"

namespace palimpsest {
struct PipelineRunner::Threads {
  Threads(int stages, int threads, int threads_of_stage) : all(threads) {
    for (int stage = 0; stage < stages; ++stage) {
      of_stage.push_back(std::make_unique<tbb::task_arena>(threads_of_stage));
    }
  }
  tbb::task_arena all;
  std::vector<std::unique_ptr<tbb::task_arena>> of_stage;
};

PipelineRunner::PipelineRunner(int stages, int threads, int threads_of_stage)
    : threads_(std::make_unique<Threads>(stages, threads, threads_of_stage)) {}
PipelineRunner::~PipelineRunner() = default;

void PipelineRunner::execute(const std::function<void()>& f) { threads_->all.execute(f); }

void PipelineRunner::release_memory() {
  prepared_ = nullptr;
  runners_.clear();
  block_ = Arena();
}

void PipelineRunner::prepare(const std::shared_ptr<const PipelinePlan>& given) {
  if (prepared_ == given) return;
  prepared_ = nullptr;
  runners_.clear();
  const PipelinePlan& plan = *given;
  if (const Bytes bytes = std::max<Bytes>(plan.block, 1); block_.size() != bytes) {
    block_ = Arena();
    block_ = Arena(meter_, bytes);
  }
  for (const std::vector<PlacedPiece>& pieces : plan.programs) {
    for (const PlacedPiece& placed : pieces) {
      if (placed.program == nullptr) continue;
      const auto stage = static_cast<std::size_t>(placed.piece.stage);
      const std::span<std::byte> memory(block_.at(plan.workspace_begins[stage]),
                                        static_cast<std::size_t>(plan.workspaces[stage]));
      runners_.try_emplace({placed.piece.stage, placed.program.get()}, placed.program, memory);
    }
  }
  prepared_ = given;
}

/// One run of a plan.
class PipelineRunner::Run {
 public:
  Run(PipelineRunner& owner, const PipelinePlan& plan, const PipelineOrder& order,
      std::span<const MicroBatch> micro_batches, const TakeGradient& take,
      const RunOptions& options, StageMessages* messages = nullptr)
      : owner_(owner),
        plan_(plan),
        order_(order),
        micro_batches_(micro_batches),
        take_(take),
        timeline_(order.tasks().size()),
        stages_(plan.stages.size()),
        control_(run_control_of(options, steps())),
        native_(decided(options.native)) {
    for (std::size_t task = 0; task < timeline_.size(); ++task) {
      timeline_[task].stage = order.tasks()[task].stage;
    }
    if (messages != nullptr) after_step_ = [=](std::uint32_t) { messages->progress(); };
  }

  void run() {
    run_tasks(owner_.threads_->all, order_.edges(),
              [this](std::uint32_t task) { carry_out(task); });
  }

  void carry_out(std::uint32_t task) {
    const auto& [stage, what] = order_.tasks()[task];
    Report::StageTask& done = timeline_[task];
    done = {stage, what.micro_batch, what.backward, now(), 0};
    const auto index = static_cast<std::size_t>(stage);
    owner_.threads_->of_stage[index]->execute([&] {
      const std::string place = "[pipeline] stage " + std::to_string(stage) + ", " +
                                (what.backward ? "backward" : "forward") + " part of micro-batch " +
                                std::to_string(what.micro_batch);
      naming_errors(place, [&] { run_piece(stages_[index], task, done.start); });
    });
    done.end = now();
  }

  Report report() {
    Report report;
    for (const Report::StageTask& done : timeline_) {
      if (!plan_.stage || done.stage == *plan_.stage) report.timeline.push_back(done);
    }
    report.stages = plan_.stages;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      Report::Stage& stage = report.stages[s];
      const Bytes beside = stage.predicted_peak - plan_.workspaces[s];
      stage.measured_peak = beside + stages_[s].peak;
      report.measured_peak += stages_[s].peak;
      report.measured_live_peak += stages_[s].live_peak;
      report.predicted_live_peak += beside + stages_[s].predicted_live_peak;
      report.computed += stages_[s].computed;
      report.groups += stages_[s].groups;
      report.kernel_seconds += stages_[s].profiled.kernel_seconds;
      std::ranges::move(stages_[s].profiled.steps, std::back_inserter(report.steps));
    }
    for (const auto& [key, runner] : owner_.runners_) {
      add_native(report.native, native_of(runner.executor()));
    }
    report.measured_peak += plan_.layout.bytes;
    report.measured_live_peak += plan_.layout.bytes;
    std::uint32_t once = 0;
    for (const MicroBatch& batch : micro_batches_) once += plan_.keep_all_computed[batch.program];
    report.recomputed = report.computed - std::min(once, report.computed);
    return report;
  }

 private:
  /// Steps of the programs of all tasks that run here.
  std::uint64_t steps() const {
    std::uint64_t steps = 0;
    for (const auto& [stage, what] : order_.tasks()) {
      const std::size_t program =
          micro_batches_[static_cast<std::size_t>(what.micro_batch)].program;
      const PlacedPiece& placed = plan_.piece(program, stage, what.backward);
      if (placed.program != nullptr) steps += placed.program->instructions()->steps().size();
    }
    return steps;
  }

  /// Measurements of a stage, written by the thread that does its work.
  struct Stage {
    Bytes peak = 0;
    Bytes live_peak = 0;
    Bytes predicted_live_peak = 0;
    std::uint32_t computed = 0;
    std::uint32_t groups = 0;
    Report profiled;
  };

  std::int64_t now() const { return (std::chrono::steady_clock::now() - start_).count(); }

  void run_piece(Stage& measured, std::uint32_t task, std::int64_t start) {
    const auto& [stage, what] = order_.tasks()[task];
    const int micro_batch = what.micro_batch;
    const MicroBatch& batch = micro_batches_[static_cast<std::size_t>(micro_batch)];
    const PlacedPiece& placed = plan_.piece(batch.program, stage, what.backward);
    if (placed.program != nullptr) run_program(measured, placed, batch, micro_batch, start);
    for (const auto& [parameter, place] : placed.taken) {
      take_(micro_batch, parameter, at(place, micro_batch));
    }
  }

  void run_program(Stage& measured, const PlacedPiece& placed, const MicroBatch& batch,
                   int micro_batch, std::int64_t start) {
    const LentLeaves lent(placed.piece, *batch.tape);
    std::vector<std::byte*> arguments;
    for (const RingPlace& place : placed.arguments) {
      arguments.push_back(at(place, micro_batch));
    }
    std::vector<std::byte*> results;
    for (std::size_t i = 0; i < placed.results.size(); ++i) {
      const Piece::Result& result = placed.piece.results[i];
      if (placed.results[i].ring != RingPlace::nowhere) {
        results.push_back(at(placed.results[i], micro_batch));
      } else if (result.use == Piece::Result::Use::outcome) {
        results.push_back(batch.outcome);
      } else if (result.use == Piece::Result::Use::output) {
        results.push_back(batch.outputs[result.index]);
      } else {
        results.push_back(batch.gradients[result.index]);
      }
    }
    BufferRunner& runner = owner_.runner(placed);
    runner.set_after_step(after_step_ ? &after_step_ : nullptr);
    runner.set_control(control_ ? &*control_ : nullptr, true);
    runner.set_native(native_);
    runner.run(*placed.piece.tape, arguments, results, batch.round);
    const Executor& executor = runner.executor();
    measured.peak = std::max(measured.peak, executor.peak());
    measured.live_peak = std::max(measured.live_peak, executor.peak_live());
    measured.predicted_live_peak =
        std::max(measured.predicted_live_peak, placed.program->live_peak());
    measured.computed += placed.program->computed();
    measured.groups += executor.instructions().lowered().groups();
    if (executor.events().empty()) return;
    const std::size_t first = measured.profiled.steps.size();
    append_steps(measured.profiled, *placed.piece.tape, executor);
    for (Report::Step& step : std::span(measured.profiled.steps).subspan(first)) {
      step.event.start += start;
      step.event.end += start;
      step.event.thread = placed.piece.stage;
    }
  }

  std::byte* at(const RingPlace& place, int micro_batch) const {
    return owner_.block_.at(plan_.layout.rings[place.ring].place_of(micro_batch) + place.offset);
  }

  PipelineRunner& owner_;
  const PipelinePlan& plan_;
  const PipelineOrder& order_;
  std::span<const MicroBatch> micro_batches_;
  const TakeGradient& take_;
  std::vector<Report::StageTask> timeline_;  // by task
  std::vector<Stage> stages_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::function<void(std::uint32_t)> after_step_;  // none without messages
  std::optional<RunControl> control_;
  NativeCode native_;
};

Report PipelineRunner::run(const std::shared_ptr<const PipelinePlan>& plan,
                           const PipelineOrder& order, std::span<const MicroBatch> micro_batches,
                           const TakeGradient& take, const RunOptions& options) {
  prepare(plan);
  block_.note(0, plan->block);
  Run run(*this, *plan, order, micro_batches, take, options);
  run.run();
  return run.report();
}

Report PipelineRunner::run_stage(StageMessages& messages, const PipelinePlan& plan,
                                 const PipelineOrder& order,
                                 std::span<const MicroBatch> micro_batches,
                                 const TakeGradient& take, const RunOptions& options) {
  std::optional<Run> run;
  std::exception_ptr failure;
  bool failed = false;
  const auto attempt = [&](const auto& f) {
    try {
      if (!failed) f();
    } catch (...) {
      failure = std::current_exception();
      failed = true;
    }
  };
  messages.begin(block_.at(0));
  attempt([&] {
    block_.note(0, plan.block);
    run.emplace(*this, plan, order, micro_batches, take, options, &messages);
  });
  for (std::uint32_t task = 0; task < order.tasks().size(); ++task) {
    const auto& [stage, what] = order.tasks()[task];
    if (stage != *plan.stage) continue;
    const MicroBatch& batch = micro_batches[static_cast<std::size_t>(what.micro_batch)];
    const PlacedPiece& placed = plan.piece(batch.program, stage, what.backward);
    if (!messages.receive(placed, what.micro_batch)) failed = true;
    attempt([&] { run->carry_out(task); });
    messages.send(placed, what.micro_batch, failed);
  }
  messages.end();
  if (failure != nullptr) std::rethrow_exception(failure);
  return run->report();
}

}  // namespace palimpsest
