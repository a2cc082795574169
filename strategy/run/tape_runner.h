#pragma once

#include <oneapi/tbb/task_arena.h>

#include <list>
#include <memory>
#include <optional>
#include <span>

#include "strategy/base/options.h"
#include "strategy/base/report.h"
#include "strategy/base/run_observer.h"
#include "strategy/compile/compiled_program.h"
#include "strategy/run/run_memory.h"

namespace palimpsest {

/// Runs compiled programs on the values of tapes. Keeps memory and executors for the next run. Use
/// it from one thread at a time.
class TapeRunner {
 public:
  struct RunSettings {
    const RunOptions& options;
    int threads;
    Round round = {};  ///< as in `KernelCall`
    /// Observes the run; null: none.
    RunObserver* observer = nullptr;
    std::span<const ValueId> observed = {};  ///< targets that the observer receives
  };

  /// Runs the program compiled for `tape`. It takes the tape's present values and makes the results
  /// present. Returns the report, without what is known of planning. A run that fails leaves the
  /// values that it did not touch.
  Report run(Tape& tape, const std::shared_ptr<const CompiledProgram>& program,
             const RunSettings& settings);
  /// Notes that kernels made during the last run.
  const RunScope::Notes& notes() const { return executors_.front().notes(); }

  /// A thread pool of this size.
  tbb::task_arena& threads(int count);
  RunMemory& memory() { return memory_; }
  const RunMemory& memory() const { return memory_; }
  /// Approximate bytes kept for known programs.
  Bytes metadata_bytes() const;

 private:
  Executor& executor_for(const CompiledProgram& program);

  RunMemory memory_;
  std::list<Executor> executors_;  // most recently used first
  std::optional<tbb::task_arena> threads_;
};

}  // namespace palimpsest
