#pragma once

#include "strategy/base/report.h"
#include "strategy/run/executor.h"

namespace palimpsest {

/// Adds what is counted of another part of the same step.
void add_counts(Report& sum, const Report& other);

/// What is to be said of a run of `plan` that has just ended, but for planning and times; `profile`
/// as in `RunOptions`.
Report report_of(const Tape& tape, const Plan& plan, const Executor& executor, int threads,
                 bool profile);

/// Appends the only step of a run, of a recorded node by itself: whether it was run before, and the
/// bytes that were live.
void append_step(Report& report, const Tape& tape, NodeId node, bool again, Bytes live);
/// Appends a run that came behind what the report is of: counts, times and steps.
void append_run(Report& report, const Report& run);
/// Appends the steps of a run that was profiled, and adds the time they took.
void append_steps(Report& report, const Tape& tape, const Executor& executor);
/// What kernels there are.
std::string kernel_level();

}  // namespace palimpsest
