#pragma once

#include <optional>
#include <vector>

#include "checkpoint/chains/action.h"

namespace palimpsest {

/// The least forward steps to reverse `steps` equal steps when `snapshots` states can be held at a
/// time, including state 0. Each step counts once with its tape, and once for each time it is
/// advanced over. The longest chain that runs no step more than r times before its tape has β(s, r)
/// = C(s + r, s) steps. So the result is n + Σ (n − β(s, r)) over the r with β(s, r) < n (Griewank
/// and Walther, 2000). Linear in the number of these r. Throws `ArgumentError` for no snapshots.
std::uint64_t binomial_forward_steps(std::uint32_t steps, std::uint32_t snapshots);

/// The schedule that takes `binomial_forward_steps` and, among those, has the fewest stores. It
/// yields one action at a time: O(1) per action, at most four actions per step, and memory for at
/// most `snapshots` entries.
class BinomialSchedule {
 public:
  /// Reverses `steps` steps from state `first` on. Throws `ArgumentError` for no snapshots.
  BinomialSchedule(std::uint32_t steps, std::uint32_t snapshots, std::uint32_t first = 0);

  /// The next action; nothing when every step is reversed.
  std::optional<ChainAction> next();

  /// After a store: takes the next actions as long as they advance by one step and store its state
  /// in the next slot. Returns the states that they store.
  ChainRow take_stores();
  /// After a restore: takes the next actions as long as they reverse the step of the restored state
  /// and restore the state in the slot before. Returns the states whose steps they reverse. The
  /// last of these actions is a reversal.
  ChainRow take_reversals();

 private:
  /// Steps [first, last) to be reversed with `snapshots`, including the one of `first`.
  struct Range {
    std::uint32_t first;
    std::uint32_t last;
    std::uint32_t snapshots;
    std::uint32_t repetitions;  // the least r with β(snapshots, r) ≥ last − first
    std::uint64_t reach;        // β(snapshots, repetitions − 1)
  };
  void split();
  /// The slot of state `top_`.
  std::uint32_t slot() const;

  std::vector<Range> ranges_;  // the current one last; the index of a range is the slot of `first`
  // Steps [top_, last_) come next. In a range where each step runs once before its tape, the states
  // from `first` to `top_` are held, one slot each. Other ranges are split at `top_` = `first`.
  std::uint32_t top_;
  std::uint32_t last_;
  std::uint32_t at_hand_;  // the current state
  bool store_;             // state `top_` has not been stored yet
};

}  // namespace palimpsest
