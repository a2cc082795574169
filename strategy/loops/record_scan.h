#pragma once

#include "strategy/loops/scan.h"
#include "strategy/loops/step_recorder.h"

namespace palimpsest {

/// Records `scan` on `tape`, with the body that the loop calls to record its steps. `is_derived`:
/// it is part of the derivative of a loop.
LoopResult record_scan(Tape& tape, std::span<const Var> state, std::int64_t steps,
                       std::span<const Var> inputs, StepBody body, const LoopOptions& options,
                       bool is_derived = false);

}  // namespace palimpsest
