#pragma once

#include <span>
#include <vector>

#include "strategy/loops/loop_layout.h"

namespace palimpsest {

/// How the memory of a loop is divided between states and a step.
struct LoopDivision {
  std::uint32_t snapshots = 0;  ///< states held beside the first
  Bytes share = unlimited;      ///< the budget that a step is planned in
  std::uint32_t ahead = 0;      ///< states made while other steps are reversed, at most
  bool operator==(const LoopDivision&) const = default;
};

/// Bytes that either part of a loop takes beside what states are held in.
Bytes forward_memory(const Loop& loop, int threads, Bytes share);
Bytes backward_memory(const LoopGradient& gradient, int threads, Bytes share, std::uint32_t ahead);
/// The most that any part takes beside what states are held in.
Bytes bytes_beside_states(std::span<const LoopGradient* const> gradients,
                          const LoopDivision& division, int threads);
/// Where a state is decoded.
Bytes decoded_bytes(const Loop& loop);

/// The smallest share in which the steps of all parts can be planned, and one that none of them
/// would use more of.
Bytes smallest_share(std::span<const LoopGradient* const> gradients, int threads);
Bytes largest_share(std::span<const LoopGradient* const> gradients, int threads);

/// Where fewer states can be held, it may be worth computing parts of steps again.
inline constexpr std::uint32_t few_states = 16;
/// Shares to try then, the smallest last.
std::vector<Bytes> shares_between(Bytes smallest, Bytes largest);

/// How a loop divides the budget of its own; `gradients` are its backward parts, one at least. As
/// many states are held as there is room for beside a step that keeps all it makes; where these are
/// few, beside one planned in a share, if that is faster; none is made ahead. Without a budget all
/// states. Throws `BudgetError` when it is too small for one state and the smallest share.
LoopDivision own_division(std::span<const LoopGradient* const> gradients, int threads);

}  // namespace palimpsest
