#include "strategy/run/tape_runner.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "autodiff/parallel.h"
#include "autodiff/usable_threads.h"
#include "strategy/base/stopwatch.h"
#include "strategy/run/observed_run.h"
#include "strategy/run/report_of.h"
#include "strategy/run/tape_values.h"

namespace palimpsest {

tbb::task_arena& TapeRunner::threads(int count) {
  if (!threads_ || threads_->max_concurrency() != count) threads_.emplace(count);
  return *threads_;
}

Bytes TapeRunner::metadata_bytes() const {
  Bytes bytes = 0;
  for (const Executor& each : executors_) bytes += each.metadata_bytes();
  return bytes;
}

Executor& TapeRunner::executor_for(const CompiledProgram& program) {
  const auto known = std::ranges::find_if(executors_, [&](const Executor& executor) {
    return executor.shared_instructions() == program.instructions;
  });
  if (known != executors_.end()) {
    executors_.splice(executors_.begin(), executors_, known);
  } else {
    // Instructions that no cached program owns are not run again.
    std::erase_if(executors_, [](const Executor& executor) {
      return executor.shared_instructions().use_count() == 1;
    });
    executors_.emplace_front(program.instructions);
  }
  return executors_.front();
}

Report TapeRunner::run(Tape& tape, const std::shared_ptr<const CompiledProgram>& program,
                       const RunSettings& settings) {
  const RunOptions& options = settings.options;
  const bool is_observed = settings.observer != nullptr && !settings.observed.empty();
  if (is_observed) settings.observer->begin();
  const Stopwatch running;
  Executor& executor = executor_for(*program);
  std::function<void(std::uint32_t)> after_step;
  if (is_observed) after_step = ObservedRun(*settings.observer, tape, executor, settings.observed);
  std::optional<RunControl> control;
  if (is_controlled(options)) {
    control.emplace(options.stop, options.progress, program->instructions->steps().size());
  }
  const Executor::Memory within = memory_.get(executor, options);
  take_values(tape, executor, within.arena);
  const bool is_serial = program->instructions->is_serial();
  const auto carry_out = [&] {
    const SerialScope scope(is_serial);
    executor.run(tape, within,
                 {.threads = settings.threads,
                  .anomaly = options.anomaly,
                  .profile = options.profile,
                  .round = settings.round,
                  .after_step = is_observed ? &after_step : nullptr,
                  .control = control ? &*control : nullptr,
                  .native = decided(options.native)});
  };
  try {
    if (is_serial) {
      carry_out();
    } else {
      threads(settings.threads).execute(carry_out);
    }
  } catch (...) {
    give_back(tape, executor);
    throw;
  }
  give_results(tape, executor);
  const double run_seconds = running.seconds();
  Report report = report_of(tape, *program->plan, executor, settings.threads, options.profile);
  report.thread_problem = thread_problem(options.threads);
  report.memory = options.memory;
  report.predicted_peak = memory_.predicted_peak();
  report.run_seconds = run_seconds;
  return report;
}

}  // namespace palimpsest
