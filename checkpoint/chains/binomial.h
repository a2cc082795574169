#pragma once

#include <optional>
#include <vector>

#include "checkpoint/chains/action.h"

namespace palimpsest {

/// Forward steps that reversing `steps` equal steps takes at least when `snapshots` states can be
/// held at a time, state 0 counted among them: each step once with its tape, and what is advanced
/// over. With β(s, r) = C(s + r, s), the longest chain that runs no step more than r times before
/// its tape, it is n + Σ (n − β(s, r)) over the r with β(s, r) < n (Griewank and Walther, 2000).
/// Linear in the number of these r. Throws `ArgumentError` for no snapshots.
std::uint64_t binomial_forward_steps(std::uint32_t steps, std::uint32_t snapshots);

/// The schedule that takes `binomial_forward_steps`, and of these the one with the fewest stores,
/// an action at a time: O(1) an action, at most four actions a step, memory for `snapshots`
/// entries at most.
class BinomialSchedule {
 public:
  /// Reverses `steps` steps from state `first` on. Throws `ArgumentError` for no snapshots.
  BinomialSchedule(std::uint32_t steps, std::uint32_t snapshots, std::uint32_t first = 0);

  /// The next action; nothing when every step is reversed.
  std::optional<ChainAction> next();

 private:
  /// Steps [first, last) that are to be reversed with `snapshots`, that of `first` among them.
  struct Range {
    std::uint32_t first;
    std::uint32_t last;
    std::uint32_t snapshots;
    std::uint32_t repetitions;  // the least r with β(snapshots, r) ≥ last − first
    std::uint64_t reach;        // β(snapshots, repetitions − 1)
  };
  std::uint32_t split();

  std::vector<Range> ranges_;  // the one at hand last; its place is its slot
  std::uint32_t at_hand_;      // the state
  bool store_;                 // the last range's state has not been stored yet
};

}  // namespace palimpsest
