#pragma once

#include "autodiff/export.h"
#include "checkpoint/machine.h"
#include "checkpoint/plan.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// The predicted memory and time of a run.
struct Forecast {
  Plan plan;
  Bytes peak = 0;      ///< as its report will predict it
  double seconds = 0;  ///< without planning
  /// That of the first run on an evaluator that has no plan yet, which may follow a fast first
  /// plan.
  Bytes first_peak = 0;
};

/// Seconds of a step on `threads` threads, given those on one. The step is divided among threads
/// unless it is serial, or too short for kernels to do so.
double seconds_of_step(double alone, bool serial, int threads);

/// Seconds of executing a plan for a graph whose costs are seconds on one thread. On several
/// threads it is the larger of two times: all work divided evenly, and the longest chain of
/// dependent steps (Brent, 1974). Steps in the chain are divided as `seconds_of_step` says. On a
/// machine with caches, unless the costs are `measured`, the result is scaled by the time that
/// operands take to move through the caches.
double seconds_of_run(const Graph& graph, const Plan& plan, int threads, const Machine& machine,
                      bool measured);

}  // namespace palimpsest
