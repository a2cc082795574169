#pragma once

#include <vector>

#include "strategy/compile/fusion/fused_kernel.h"
#include "strategy/compile/fusion/groups.h"

namespace palimpsest {

/// A group as a fused kernel, with its inputs and outputs.
struct GroupKernel {
  FusedKernel program;
  std::vector<ValueId> inputs;   ///< by index in the program
  std::vector<ValueId> outputs;  ///< by index in the program
  std::vector<NodeId> computed;  ///< nodes; some occur more than once
  Cost cost;
};

/// The program of a group. Its outputs are its own values that `read` marks.
GroupKernel program_of(const Tape& tape, const AccessMaps& access_maps, const Unit& unit,
                       const std::vector<bool>& read);

}  // namespace palimpsest
