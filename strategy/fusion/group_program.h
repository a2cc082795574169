#pragma once

#include <vector>

#include "strategy/fusion/clones.h"
#include "strategy/fusion/tile_program.h"

namespace palimpsest {

/// A group as a program, and what it reads and writes.
struct GroupProgram {
  TileProgram program;
  std::vector<ValueId> inputs;   ///< by number in the program
  std::vector<ValueId> outputs;  ///< the same
  Cost cost;
};

/// The program of a group's members; values that `read` marks and the group makes for others are
/// its outputs.
GroupProgram program_of(const Tape& tape, const Readings& readings,
                        const std::vector<NodeId>& members, NodeId boundary,
                        const std::vector<bool>& read);

}  // namespace palimpsest
