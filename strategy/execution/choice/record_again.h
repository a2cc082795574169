#pragma once

#include "autodiff/tape.h"

namespace palimpsest {

/// Records on `to`, which is empty, what was recorded on `from`, for the evaluator that `to` has:
/// nodes and values have the same numbers, and leaves share their storage.
void record_again(const Tape& from, Tape& to);

}  // namespace palimpsest
