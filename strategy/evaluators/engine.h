#pragma once

#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "autodiff/export.h"
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

/// Plans and runs tapes, and keeps what the next run can use again: the arena and the plans of
/// graphs seen before, recognised by their structure. One engine serves one thread at a time.
class Engine {
 public:
  Engine();
  virtual ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Makes `targets` present on their tape and returns the report of the run. Throws `BudgetError`
  /// before any work when the budget is too small, `ArgumentError` for a negative budget or number
  /// of threads.
  Report evaluate(Tape& tape, std::span<const ValueId> targets, const RunOptions& options);

  /// `evaluate` with the first node of the backward part known, for planners that ask for it.
  virtual Report evaluate(Tape& tape, std::span<const ValueId> targets, NodeId backward_begins,
                          const RunOptions& options);

  /// What running a loss and its gradients again made.
  struct Repeated {
    Report report;
    std::vector<Tensor> gradients;
  };
  /// Makes the loss present on a tape that records the same as one that was remembered, and its
  /// gradients, which then need not be recorded; nothing where there is no such tape. Throws as
  /// `evaluate` does.
  std::optional<Repeated> repeat(Tape& tape, ValueId loss, const RunOptions& options);
  /// Keeps a copy of what a tape records for steps to come; but for leaves, nothing was present
  /// there when `recorded` was run.
  void remember(const Tape& tape, const Differentiated& recorded);

  /// The plan `evaluate` would follow, at once or when it has run for a while (see
  /// `RunOptions::planner`), without running anything.
  Plan plan(Tape& tape, std::span<const ValueId> targets, NodeId backward_begins,
            const RunOptions& options);

  /// Writes what each pass of compilation does for `evaluate`, without running anything.
  void write_compilation(std::ostream& stream, Tape& tape, std::span<const ValueId> targets,
                         NodeId backward_begins, const RunOptions& options, DumpLevel level);

  /// The graph that `plan` plans where nothing but leaves is present; that of a run without a
  /// budget where no plan fits.
  Graph graph(Tape& tape, std::span<const ValueId> targets, NodeId backward_begins,
              const RunOptions& options);

  /// What `evaluate` would take when it has run for a while, without running anything; of `cached`
  /// memory the first time. Throws as `evaluate` before any work.
  Forecast forecast(Tape& tape, std::span<const ValueId> targets, NodeId backward_begins,
                    const RunOptions& options, const Rates& rates);

  /// Computes one node now, from inputs present on the tape, into metered storage; outputs present
  /// already stay as they are.
  virtual void compute_now(Tape& tape, NodeId node, const RunOptions& options);
  /// From here on collects what evaluators have computed while they record: counts and, where it is
  /// profiled, times and steps.
  void collect();
  /// Of a run for such an evaluator.
  void add_collected(const Report& run);
  /// What was collected, one behind the other; nothing more is.
  Report take_collected();
  /// Most threads that a run with `options` takes. Throws `ArgumentError` for a negative number.
  static int threads(const RunOptions& options);
  /// Who says how much memory is free when a run has no budget; the system otherwise.
  void set_free_memory(FreeMemory free);
  /// Who is told of runs with a backward part from here on; null: nobody.
  void set_observer(RunObserver* observer);
  /// Gives the memory kept for the next run back to the system, but for what is still held.
  void release_arena();
  /// From here on a run may take the memory that a larger one left, not only one of the same size:
  /// for programs that run in turn. What is kept for the next run is then as much as the largest
  /// took.
  void share_arena();

  /// The meter of every byte this engine allocates.
  const Meter& meter() const;
  /// Programs planned so far; a training loop of one structure plans once.
  std::uint64_t plans_made() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace palimpsest
