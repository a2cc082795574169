#pragma once

#include "strategy/base/report.h"
#include "strategy/run/executor.h"

namespace palimpsest {

/// Adds the counts of another part of the same step.
void add_counts(Report& sum, const Report& other);

/// The report of a run of `plan` that has just ended, without planning and times. `profile` as in
/// `RunOptions`.
Report report_of(const Tape& tape, const Plan& plan, const Executor& executor, int threads,
                 bool profile);

/// Appends the only step of a run that consists of one recorded node. `again` says whether it was
/// run before, `live` how many bytes were live.
void append_step(Report& report, const Tape& tape, NodeId node, bool again, Bytes live);
/// Appends a later run: counts, times and steps.
void append_run(Report& report, const Report& run);
/// Appends the steps of a profiled run, and adds the time they took.
void append_steps(Report& report, const Tape& tape, const Executor& executor);
/// The kernel variants in use.
std::string kernel_level();

}  // namespace palimpsest
