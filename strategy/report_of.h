#pragma once

#include "strategy/executor.h"
#include "strategy/report.h"

namespace palimpsest {

/// What is to be said of a run of `plan` that has just ended, but for planning and times; `profile`
/// as in `RunOptions`.
Report report_of(const Tape& tape, const Plan& plan, const Executor& executor, int threads,
                 bool profile);

}  // namespace palimpsest
