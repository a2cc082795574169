#pragma once

#include "strategy/base/report.h"
#include "strategy/run/executor.h"

namespace palimpsest {

/// Adds the counts of another part of the same step.
void add_counts(Report& sum, const Report& other);

/// The native code of the executor's last run, with that of loops in it.
Report::Native native_of(const Executor& executor);
/// Adds the native code of another part of the same step.
void add_native(Report::Native& sum, const Report::Native& other);

/// The report of a run of `plan` that has just ended. It leaves out planning and times. `profile`
/// as in `RunOptions`.
Report report_of(const Tape& tape, const Plan& plan, const Executor& executor, int threads,
                 bool profile);

/// Appends the only step of a run of one recorded node. `again` says whether the node ran before;
/// `live` is the number of live bytes.
void append_step(Report& report, const Tape& tape, NodeId node, bool again, Bytes live);
/// Appends a later run: counts, times and steps.
void append_run(Report& report, const Report& run);
/// Appends the steps of a profiled run and adds their times.
void append_steps(Report& report, const Tape& tape, const Executor& executor);
/// The kernel variants in use.
std::string kernel_level();

}  // namespace palimpsest
