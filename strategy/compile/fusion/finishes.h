#pragma once

#include <vector>

#include "strategy/compile/fusion/known_of_tape.h"

namespace palimpsest {

/// An elementwise node that another one carries out on what it makes, which so is never in memory.
struct Finishing {
  NodeId node;
  NodeId maker;
  std::uint32_t made;  ///< which input of the node the maker makes
};

/// The nodes to be carried out so, in order: `maker` has an operation that finishes, and nothing
/// but the node reads what it makes. All else that the node reads lies in memory whatever becomes
/// of it, element by element, and so does what it makes; or no group reads that.
std::vector<Finishing> find_finishings(const Tape& tape, const KnownOfTape& known);

}  // namespace palimpsest
