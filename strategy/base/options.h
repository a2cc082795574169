#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string_view>

#include "autodiff/export.h"
#include "autodiff/run_control.h"
#include "checkpoint/machine.h"
#include "checkpoint/plan.h"
#include "strategy/base/allocation_policy.h"

namespace palimpsest PALIMPSEST_EXPORT {

class Profile;

/// Whether a C compiler turns fused groups and whole steps of loops into machine code while the
/// program runs. The bits stay the same. docs/native.md has the details.
enum class NativeCode : std::uint8_t {
  off,        ///< fused groups are interpreted
  automatic,  ///< in another thread, if runs have taken so long that it pays; kept if it is faster
  at_once,    ///< before the first run, which waits for the compiler
};
std::string_view name_of(NativeCode native);

/// How a run is planned and executed. The defaults keep everything and use every core.
struct RunOptions {
  /// Most bytes that the run may take for values, adjoints, returned gradients and workspaces.
  /// Leaves and the tape itself do not count. The run never exceeds it: if no plan fits, it throws
  /// `BudgetError` before any work.
  ///
  /// Without a budget and without a planner, the free memory, within the limits of control groups,
  /// becomes the budget of a run that would take more. It is then `Report::budget`.
  ///
  /// Without a planner a larger budget never costs more. One exception is a program of more than 83
  /// nodes while a fast first plan serves. It serves until runs have taken ten times as long as
  /// planning in full.
  Bytes memory_budget = unlimited;
  /// The planner. Null keeps everything if that fits the budget. Otherwise it begins with a fast
  /// first plan, which is `quick` where more would take longer than a tenth of the run. The engine
  /// improves the plan while the program is run again, and spends a tenth of the run time on that.
  /// `automatic({.seconds = 5})` searches for a better plan before the first run.
  PlannerPtr planner = nullptr;
  /// Most threads. 0 is one per core; never more than oneTBB allows in this process, or than the
  /// system starts, which `Report::thread_problem` says. The results have the same bits for any
  /// number.
  int threads = 0;
  /// How memory is laid out, and what is kept for later runs.
  AllocationPolicy memory = AllocationPolicy::minimal_peak;
  /// Fuses elementwise operations into groups. Each group runs in one pass over tiles that stay in
  /// the cache: the same bits, in less time and memory. Not used with planners that name nodes, nor
  /// in anomaly mode. With `given`, the schedule says whether a program is fused and simplified.
  bool fuse = true;
  /// Computes common subexpressions once, drops identities such as x·1, and folds constants: the
  /// same bits. Not used with planners that name nodes, nor in anomaly mode. If a program comes
  /// again with other constants, only what holds for both is simplified.
  bool simplify = true;
  /// Machine code for fused groups and steps of loops. Groups of 16-bit types are interpreted. So
  /// is everything where no compiler is found, and `Report::native` says why. The environment
  /// variable PALIMPSEST_NATIVE says what `automatic` means in a process: off, automatic, at_once.
  NativeCode native = NativeCode::automatic;
  /// Times every step of the run, for the steps of the report, its pictures and traces. Also reads
  /// the process's memory. Costs about 0.1 µs per step, and memory for names.
  bool profile = false;
  /// Anomaly mode: the first NaN or infinity throws `AnomalyError` naming its origin.
  bool anomaly = false;
  /// The costs that planners assume. The default is fixed, so that plans are equal on all machines.
  /// `measured_machine()` is the current machine. The bits of gradients do not depend on it.
  ///
  /// On a machine with caches, values are also recomputed, at any budget, where that is faster than
  /// reading them from memory. Several plans are compared when a program is first seen.
  Machine machine = {};
  /// Ends the run before the next step of its schedule, or of a loop at any depth, once a stop is
  /// requested. Ends planning within milliseconds for graphs of a few thousand nodes. Then it
  /// throws `StoppedError`. Tape, parameters and kept plans stay usable, as after other errors. A
  /// custom operation ends where it calls `CustomCall::control`.
  std::stop_token stop = {};
  /// Called while the run goes on: about a hundred times for its schedule, and for each pass
  /// through a loop. Loops inside of a loop or a `checkpoint` are not reported. Pipelines and
  /// devices count the steps of all their parts. Calls come from the threads of the run, one at a
  /// time. An exception ends the run. To change the tape that runs, or to ask for a value that it
  /// has not computed, is a `TapeError`; so is a use of its evaluator, `Runner` or `Execution`.
  /// Null: no calls. Not called during planning, nor by what eager and hybrid modes compute while
  /// they record.
  std::shared_ptr<const ProgressFunction> progress = nullptr;
  /// Times of earlier runs. They replace the machine's estimates for the work that they contain.
  std::shared_ptr<const Profile> costs = nullptr;

  bool operator==(const RunOptions&) const = default;
};

/// Whether a run can be stopped, or is watched.
inline bool is_controlled(const RunOptions& options) {
  return options.stop.stop_possible() || options.progress != nullptr;
}

/// Throws `ArgumentError` for a negative budget or number of threads, and for an invalid machine.
void check(const RunOptions& options);
/// Returns the number of threads that a run uses: one per core for 0, and at most what oneTBB
/// allows. Throws `ArgumentError` for a negative number.
int checked_threads(int threads);

}  // namespace palimpsest
