#pragma once

#include "strategy/run/executor.h"

namespace palimpsest {

/// Gives an executor what a tape supplies and, taken off the tape so that a drop frees it, what is
/// present there: copied into `arena`, or in its own storage when that is null.
void take_values(Tape& tape, Executor& executor, const Arena* arena);

/// Makes what a finished run was asked for present on the tape.
void give_results(Tape& tape, Executor& executor);

/// Makes present again what was before a run that stopped, and was neither dropped nor written.
void give_back(Tape& tape, Executor& executor);

}  // namespace palimpsest
