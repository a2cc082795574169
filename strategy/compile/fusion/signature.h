#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "autodiff/tape.h"

namespace palimpsest {

/// Writes into `signature`, over what it held, all that planning and fusing read of a tape: the
/// same words mean the same graph and the same groups. Attributes count by what they do to costs,
/// workspaces and places of elements; numbers and random streams may differ, and so may what users'
/// operations of one name compute: instructions look for these on the tape that is run.
void sign(const Tape& tape, int threads, std::vector<std::uint64_t>& signature);

}  // namespace palimpsest
