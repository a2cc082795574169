#pragma once

#include "strategy/compile/instructions.h"

namespace palimpsest {

/// Checks a plan for `graph` against its specification. Throws `InternalError`, which names the
/// violation, unless:
///
/// - the schedule is valid and has the predicted peak and cost;
/// - every interval lies in the arena;
/// - no two intervals occupied at the same time share bytes, except where one takes over the
///   other's place.
void verify(const Graph& graph, const Plan& plan);

/// Checks instructions made for `plan` against their specification. Throws `InternalError`, which
/// names the violation, unless:
///
/// - Each operand lies where its storage lies at that step, and is no larger than its storage.
/// - Dependencies order every read after the write. They order every write to reused bytes after
///   all earlier reads and writes of those bytes. So any execution order is safe. This is
///   checked in programs of up to 1,024 steps.
/// - Each result lies where it was computed last. Earlier values in its buffer are read
///   before it is written there.
void verify(const Instructions& instructions, const Plan& plan);

/// Checks that a run may write the result in place `result` over the argument in place `argument`.
/// Throws `InternalError` unless the first step that writes to `result` waits for all others that
/// read `argument`, and no result is copied from `argument`. The order is checked in programs of up
/// to 1,024 steps.
void verify_replacement(const Instructions& instructions, Instructions::Place argument,
                        Instructions::Place result);

}  // namespace palimpsest
