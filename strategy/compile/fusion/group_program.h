#pragma once

#include <vector>

#include "strategy/compile/fusion/groups.h"
#include "strategy/compile/fusion/tile_program.h"

namespace palimpsest {

/// A group as a program, and what it reads and writes.
struct GroupProgram {
  TileProgram program;
  std::vector<ValueId> inputs;   ///< by number in the program
  std::vector<ValueId> outputs;  ///< the same
  std::vector<NodeId> computed;  ///< some more than once
  Cost cost;
};

/// The program of a group; its own values that `read` marks are its outputs.
GroupProgram program_of(const Tape& tape, const Readings& readings, const Unit& unit,
                        const std::vector<bool>& read);

}  // namespace palimpsest
