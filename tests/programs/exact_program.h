#pragma once

#include <cstdint>
#include <vector>

#include "palimpsest.h"

namespace palimpsest {

/// A random program with its gradients, of sums, products and halves of small whole numbers. All
/// its numbers are exact, so any order of additions gives the same ones. It contains sizes that are
/// no power of two, masks, indices, broadcasts, moved elements and small matrices. Odd seeds are in
/// f64, even ones in f32.
std::vector<Var> record_exact(Tape& tape, std::uint64_t seed);

}  // namespace palimpsest
