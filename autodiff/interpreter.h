#pragma once

#include <span>

#include "autodiff/tape.h"

namespace palimpsest {

/// Makes `value` present on the tape. Runs the nodes it needs in recording order and drops each
/// intermediate value after its last use. It uses neither plan nor budget, and is the reference for
/// tests of the executor.
void interpret(Tape& tape, ValueId value);
/// Likewise for several values.
void interpret(Tape& tape, std::span<const ValueId> values);

/// Throws `TapeError` if `values` depend on a leaf that has no value, such as an argument of a loop
/// body outside of the loop.
void require_leaves(const Tape& tape, std::span<const ValueId> values);

}  // namespace palimpsest
