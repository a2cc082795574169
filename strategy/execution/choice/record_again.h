#pragma once

#include "autodiff/tape.h"

namespace palimpsest {

/// Records the nodes of `from` on the empty tape `to`, for the evaluator that `to` has. Nodes and
/// values have the same numbers, and leaves share their storage.
void record_again(const Tape& from, Tape& to);

}  // namespace palimpsest
