#pragma once

#include <vector>

#include "palimpsest.h"

namespace palimpsest {

/// A program generated from a seed: shared subexpressions, views, broadcasts, reductions,
/// operations with several outputs, 16-bit types, and a loss that sums several losses.
struct RandomProgram {
  std::vector<Var> parameters;
  std::vector<Var> values;  ///< all recorded values, in order
  Var loss;
};

/// Records about `size` random nodes on `tape`. The same seed gives the same program.
RandomProgram record_random(Tape& tape, std::uint64_t seed, int size);

}  // namespace palimpsest
