#pragma once

#include "strategy/compile/instructions.h"

namespace palimpsest {

/// The specification of a plan's layout, checked; `plan` is one for `graph`. Throws
/// `InternalError`, which says what does not hold: the schedule is valid and has the peak and cost
/// that were predicted, every interval lies in the arena, and no two that are occupied at one time
/// share bytes, except where one takes the other's place.
void verify(const Graph& graph, const Plan& plan);

/// The specification of instructions, checked; they were made for `plan`. Throws `InternalError`,
/// which says what does not hold:
///
/// - Each operand lies where its storage lies at that step, and is no larger than that.
/// - Every read follows the write, and every write to bytes that held something else follows all
///   who wrote or read that: by dependencies, so in whatever order threads go. That is looked at in
///   programs of up to 1,024 steps.
/// - Each result lies where it was made last.
void verify(const Instructions& instructions, const Plan& plan);

}  // namespace palimpsest
