#pragma once

#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "autodiff/export.h"
#include "autodiff/in_use.h"
#include "autodiff/var.h"
#include "checkpoint/meter.h"
#include "strategy/base/dump_level.h"
#include "strategy/base/free_memory.h"
#include "strategy/base/options.h"
#include "strategy/base/report.h"
#include "strategy/compile/forecast.h"
#include "strategy/evaluators/rates.h"

namespace palimpsest PALIMPSEST_EXPORT {  // for palimpsest-mpi

class RunObserver;
struct Differentiated;

/// Plans and runs tapes. Keeps the arena and the plans of known graphs for later runs; graphs are
/// recognised by their structure. One engine serves one thread at a time.
class Engine {
 public:
  Engine();
  virtual ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Makes `targets` present on their tape and returns the report of the run. Throws `BudgetError`
  /// before any work when the budget is too small. Throws `ArgumentError` for a negative budget or
  /// number of threads.
  Report evaluate(Tape& tape, std::span<const ValueId> targets, const RunOptions& options);

  /// Likewise, with the first node of the backward part for planners that use it.
  virtual Report evaluate(Tape& tape, std::span<const ValueId> targets, NodeId backward_begins,
                          const RunOptions& options);

  /// The result of running a known training step again.
  struct Repeated {
    Report report;
    std::vector<Tensor> gradients;
  };
  /// Computes `values` and the gradients of the first one without recording the gradients, if
  /// `remember` has seen a tape that records the same. Makes the values present. Returns nothing if
  /// no such tape is known. Throws as `evaluate` does.
  std::optional<Repeated> repeat(Tape& tape, std::span<const ValueId> values,
                                 const RunOptions& options);
  /// Keeps a copy of what a tape records, for `repeat`. Only leaves may have been present when
  /// `recorded` was run.
  void remember(const Tape& tape, const Differentiated& recorded);

  /// The plan that `evaluate` would follow, immediately or after it has run for a while (see
  /// `RunOptions::planner`). Runs nothing.
  Plan plan(Tape& tape, std::span<const ValueId> targets, NodeId backward_begins,
            const RunOptions& options);

  /// Writes what each compilation pass does for `evaluate`. Runs nothing.
  void write_compilation(std::ostream& stream, Tape& tape, std::span<const ValueId> targets,
                         NodeId backward_begins, const RunOptions& options, DumpLevel level);

  /// The graph that `plan` plans when only leaves are present. If no plan fits the budget, the
  /// graph of a run without a budget.
  Graph graph(Tape& tape, std::span<const ValueId> targets, NodeId backward_begins,
              const RunOptions& options);

  /// Predicts memory and time of `evaluate` after it has run for a while. With `cached` memory,
  /// predicts the first run. Runs nothing. Throws as `evaluate` does before any work.
  Forecast forecast(Tape& tape, std::span<const ValueId> targets, NodeId backward_begins,
                    const RunOptions& options, const Rates& rates);

  /// Computes one node now, from inputs present on the tape, into metered storage. Outputs that are
  /// already present stay unchanged.
  virtual void compute_now(Tape& tape, NodeId node, const RunOptions& options);
  /// Starts collecting what evaluators compute while they record: counts and, when profiling, times
  /// and steps.
  void collect();
  /// Adds a run for such an evaluator.
  void add_collected(const Report& run);
  /// Returns everything collected, in order, and stops collecting.
  Report take_collected();
  /// Most threads that a run with `options` uses. Throws `ArgumentError` for a negative number.
  static int threads(const RunOptions& options);
  /// Overrides the free-memory estimate of runs without a budget. Default: the operating system's.
  void set_free_memory(FreeMemory free);
  /// From now on runs for values in cached memory take no more than the first one of their program,
  /// as those with a backward part do.
  void keep_values_within_first_run();
  /// Sets the observer of later runs that have a backward part. Null: none.
  void set_observer(RunObserver* observer);
  /// For uses by evaluators. It is in use while a run or plan is in progress.
  InUse& in_use();
  /// Returns the memory kept for the next run to the system, except what is still held.
  void release_arena();
  /// From now on a run may reuse the memory of a larger run, not only of one of equal size. This is
  /// for programs that run in turn. The memory kept is then that of the largest run.
  void share_arena();
  /// From now on each value of a run has storage of its own, not a place in an arena. This is for
  /// evaluators that keep what they compute: dropping a value then frees its bytes.
  void use_no_arena();

  /// The meter of every byte this engine allocates.
  const Meter& meter() const;
  /// Number of programs planned so far. A training loop of one structure plans once.
  std::uint64_t plans_made() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace palimpsest
