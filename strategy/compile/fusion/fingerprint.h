#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "autodiff/tape.h"
#include "strategy/base/loss_and_outputs.h"

namespace palimpsest {

/// Writes the structural fingerprint of a tape into `fingerprint`, replacing its content. It
/// contains everything that planning and fusion read, so equal words mean equal graphs and groups.
/// Attributes count by their effect on costs, workspaces and places of elements. Constants, random
/// streams and the behaviour of users' operations with equal names may differ: instructions read
/// these from the tape that is run.
void append_fingerprint(const Tape& tape, int threads, std::vector<std::uint64_t>& fingerprint);

/// A hash of the fingerprint, whatever values are present.
std::uint64_t hash_of_structure(const Tape& tape, int threads);
/// Likewise, with what simplification may depend on, and with the values that are asked for:
/// attributes, except those of random operations, and constants of one element.
std::uint64_t hash_of_program(const LossAndOutputs& values, int threads);

}  // namespace palimpsest
