#pragma once

#include <vector>

#include "strategy/compile/fusion/known_of_tape.h"

namespace palimpsest {

/// A sum that a product makes as it adds to the other operand, so that the product itself is never
/// in memory.
struct Accumulation {
  NodeId sum;
  NodeId product;
  ValueId addend;
};

/// The sums to be made so, in order. Each adds two arrays of its own size. The one recorded last is
/// made by an operation that has `accumulate`, and nothing but the sum reads it, perhaps behind
/// views. The other lies in memory whatever becomes of the sum; or a group makes it and none reads
/// the sum in turn, for where both do, one group of all is better.
std::vector<Accumulation> find_accumulations(const Tape& tape, const KnownOfTape& known);

}  // namespace palimpsest
