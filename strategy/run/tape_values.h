#pragma once

#include "strategy/run/executor.h"

namespace palimpsest {

/// Gives an executor the leaves and the present values of a tape. Present values are removed from
/// the tape, so that a drop frees them. They are copied into `arena`, or keep their own storage
/// when it is null.
void take_values(Tape& tape, Executor& executor, const Arena* arena);

/// Makes the targets of a finished run present on the tape.
void give_results(Tape& tape, Executor& executor);

/// After a run that stopped: makes the values present again that were so before it, except those
/// that it dropped or overwrote.
void give_back(Tape& tape, Executor& executor);

}  // namespace palimpsest
