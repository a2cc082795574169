#pragma once

#include "autodiff/tape.h"

namespace palimpsest {

/// Makes `value` present on the tape: runs what it needs in the order of recording and drops each
/// intermediate after its last use. Without a plan and a budget; the executor's oracle in tests.
void interpret(Tape& tape, ValueId value);

}  // namespace palimpsest
