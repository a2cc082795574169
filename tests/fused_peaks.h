#pragma once

#include <algorithm>

#include "checkpoint/planners.h"
#include "strategy/compile/fusion/lowered.h"

namespace palimpsest {

/// What a run holds that recomputes nothing.
inline Bytes keep_all_peak(const Lowered& lowered) {
  const Graph& graph = lowered.graph();
  return simulate(graph, keep_all()->propose(graph, unlimited).front().schedule).peak;
}

/// The most that a fused kernel needs besides its inputs and outputs.
inline Bytes scratch_of(const Lowered& lowered) {
  Bytes scratch = 0;
  for (NodeId unit = 0; unit < lowered.graph().node_count(); ++unit) {
    if (lowered.program(unit) == nullptr) continue;
    scratch = std::max(scratch, lowered.graph().workspace(unit));
  }
  return scratch;
}

}  // namespace palimpsest
