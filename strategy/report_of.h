#pragma once

#include "strategy/executor.h"
#include "strategy/report.h"

namespace palimpsest {

/// Adds what is counted of another part of the same step.
void add_counts(Report& sum, const Report& other);

/// What is to be said of a run of `plan` that has just ended, but for planning and times; `profile`
/// as in `RunOptions`.
Report report_of(const Tape& tape, const Plan& plan, const Executor& executor, int threads,
                 bool profile);

/// Appends the steps of a run that was profiled, and adds the time they took.
void append_steps(Report& report, const Tape& tape, const Executor& executor);
/// What kernels there are.
std::string kernel_level();

}  // namespace palimpsest
