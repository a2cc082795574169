#pragma once

#include <memory>

#include "checkpoint/machine.h"
#include "checkpoint/plan.h"
#include "strategy/base/memory_handling.h"

namespace palimpsest {

class Profile;

/// How a run is planned and carried out. The defaults keep everything and use every core.
struct RunOptions {
  /// Most bytes the run may take for values, adjoints, returned gradients and workspaces; leaves
  /// and the tape itself do not count. Exceeded never; `BudgetError` before any work when no plan
  /// fits. Without one, and without a planner, a run that would take more than the memory that is
  /// free, within the limits of control groups, has that for its budget, as its report says.
  /// Without a planner a larger budget never costs more. One exception is a program of more than
  /// 83 nodes while a plan made in a hurry serves. It serves until runs have taken ten times as
  /// long as planning in full.
  Bytes memory_budget = unlimited;
  /// Who plans. Null keeps everything when that fits the budget. Otherwise it takes a plan that is
  /// soon found, `quick` where more would take longer than a tenth of the run, and has the engine
  /// improve it while it is run again, in a tenth of the time that takes.
  /// `automatic({.seconds = 5})` looks for a better plan before the first run.
  PlannerPtr planner = nullptr;
  /// Most threads; 0 is one per core, and never more than oneTBB allows in this process. The
  /// results are the same bits for any number.
  int threads = 0;
  /// What is laid out or kept for later runs.
  MemoryHandling memory = MemoryHandling::minimal_peak;
  /// Runs elementwise operations in groups, each in one pass over tiles that stay in the cache: the
  /// same bits, in less time and memory. Planners that name nodes, and anomaly mode, go without;
  /// with `given`, the schedule says whether a program is fused and simplified.
  bool fuse = true;
  /// Computes once what was recorded more than once, leaves out what changes nothing, as x·1, and
  /// does not compute numbers made of numbers: the same bits. Planners that name nodes, and anomaly
  /// mode, go without.
  bool simplify = true;
  /// Times every step and looks at the process's memory, for the steps of the report, its pictures
  /// and traces: some 0.1 µs a step, and names.
  bool profile = false;
  /// Anomaly mode: the first NaN or infinity throws `AnomalyError` naming where it came from.
  bool anomaly = false;
  /// What planners take computing to cost. The default is fixed, so that plans are the same
  /// everywhere; `measured_machine()` is the one at hand. Gradients have the same bits with any. On
  /// one with caches values are computed again also where that is faster than bringing them from
  /// memory, whatever the budget: several plans are compared when a program is first seen.
  Machine machine = {};
  /// Times of earlier runs, in place of the machine's estimates for all work that is among them.
  std::shared_ptr<const Profile> costs = nullptr;
};

/// Throws `ArgumentError` for a negative budget or number of threads, and for an invalid machine.
void check(const RunOptions& options);
/// Returns the number of threads that a run uses: one per core for 0, and at most what oneTBB
/// allows. Throws `ArgumentError` for a negative number.
int checked_threads(int threads);

}  // namespace palimpsest
