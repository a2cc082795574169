#pragma once

#include "checkpoint/machine.h"
#include "checkpoint/plan.h"

namespace palimpsest {

/// What a run would take.
struct Forecast {
  Plan plan;
  Bytes peak = 0;      ///< as its report will predict it
  double seconds = 0;  ///< once it has been planned
};

/// Seconds of one step on so many threads, by those on one: it is shared among them unless it is
/// serial, or too short for kernels to share.
double seconds_of_step(double alone, bool serial, int threads);

/// Seconds of carrying out a plan for a graph whose costs are seconds on one thread. On more, the
/// larger of what all threads have to do, shared evenly, and the longest chain of steps that wait
/// for each other (Brent, 1974), steps shared as `seconds_of_step` says. On a machine with caches
/// `seconds_in_caches` has its say, where the costs are not `measured`.
double seconds_of_run(const Graph& graph, const Plan& plan, int threads, const Machine& machine,
                      bool measured);

}  // namespace palimpsest
