#pragma once

#include <span>

#include "strategy/loops/loop_layout.h"

namespace palimpsest {

/// How the memory of a loop is divided between states and a step.
struct LoopDivision {
  std::uint32_t snapshots = 0;  ///< states held beside the first
  Bytes share = unlimited;      ///< the budget that a step is planned in

  bool operator==(const LoopDivision&) const = default;
};

/// Bytes that either part of a loop takes beside what states are held in.
Bytes forward_memory(const Loop& loop, int threads, Bytes share);
Bytes backward_memory(const LoopGradient& gradient, int threads, Bytes share);
/// Where a state is decoded.
Bytes decoded_bytes(const Loop& loop);

/// The smallest share in which the steps of all parts can be planned, and one that none of them
/// would use more of.
Bytes smallest_share(std::span<const LoopGradient* const> gradients, int threads);
Bytes largest_share(std::span<const LoopGradient* const> gradients, int threads);

/// How a loop divides the budget of its own; `gradients` are its backward parts, one at least. As
/// many states are held as there is room for beside a step that keeps all it makes, and where not
/// even one can be held, the step is planned within what is left. Without a budget all states.
/// Throws `BudgetError` when it is too small for that.
LoopDivision own_division(std::span<const LoopGradient* const> gradients, int threads);

}  // namespace palimpsest
