#pragma once

#include <vector>

#include "strategy/compile/fusion/known_of_tape.h"

namespace palimpsest {

/// A GEMM accumulate (beta = 1): the product adds its result to the other operand of a sum. The
/// product itself is never in memory.
struct GemmAccumulation {
  NodeId sum;
  NodeId product;
  ValueId addend;
};

/// The sums to fuse into their products, in order. Each adds two arrays of its own size. The later
/// operand is a product whose operation has `accumulate`. Only the sum reads it, possibly through
/// views.
///
/// The addend must be in memory anyway. Alternatively an elementwise group makes it and no group
/// reads the sum: where groups do both, one larger group is better.
std::vector<GemmAccumulation> find_accumulations(const Tape& tape, const KnownOfTape& known);

}  // namespace palimpsest
