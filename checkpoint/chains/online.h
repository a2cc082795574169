#pragma once

#include <optional>
#include <span>
#include <vector>

#include "checkpoint/chains/action.h"
#include "checkpoint/chains/binomial.h"

namespace palimpsest {

/// State `step` is in slot `slot`.
struct HeldState {
  std::uint32_t step;
  std::uint32_t slot;

  bool operator==(const HeldState&) const = default;
};

/// Chooses what to hold of a chain of equal steps that runs until it ends, nobody knows when:
/// `snapshots` states at a time, state 0 always among them.
///
/// That the chain has n steps shows when state n is at hand, which need not be reversed. So the
/// least that the sweep and the reversal can take together, had n been known, is
/// `binomial_forward_steps(n + 1, snapshots) - 1`: step n is reversed for nothing. With s
/// snapshots, let r be the least number for which β(s, r) > n. Then
///
/// - no step is run more than r times before its tape. No choice allows fewer, for any n (Wang,
///   Moin and Iaccarino, 2009). So (r + 1) n forward steps suffice, β(s + 1, r − 1) − r above the
///   least;
/// - for r ≤ 2, that is n < (s + 1)(s + 2)/2, they are the least (Stumm and Walther, 2010). For
///   larger n no choice gives the least for every n. This one was nowhere found to be more than 3
///   above the least for r = 3, 17 for r = 4, 72 for r = 5, nor 10 % for any r.
///
/// With r from 2 on, about one state in r is stored. A step takes O(1) on average over many, while
/// r = 2 O(log s). Memory for the entries held, and as many numbers once all are in use.
class OnlineSnapshots {
 public:
  /// Throws `ArgumentError` for no snapshots.
  explicit OnlineSnapshots(std::uint32_t snapshots);

  /// Step `steps()` is about to be run from the state at hand. Gives the store to carry out before,
  /// if any; what its slot held is given up.
  std::optional<ChainAction> before_step();

  std::uint32_t snapshots() const { return snapshots_; }

  /// How often `before_step` was called: the length of the chain if it has ended.
  std::uint32_t steps() const { return steps_; }

  /// By step, ascending.
  std::span<const HeldState> held() const { return held_; }

 private:
  void raise();
  std::uint32_t give_up();

  std::uint32_t snapshots_;
  std::uint32_t steps_ = 0;
  std::vector<HeldState> held_;
  std::vector<std::uint64_t> longest_;  // gaps when j snapshots are left for them: β(j, r − 1)
  std::uint64_t corner_;                // the next state that is stored to stay as long as r does
  std::uint32_t rank_;                  // of that state among these, from 1
};

/// The reversal of a chain that has ended, from the states that are held: the schedule with the
/// fewest forward steps, an action at a time. Gaps between held states are reversed from the last
/// to the first, each by a `BinomialSchedule` in the slots that are free by then. O(1) an action.
class OnlineReversal {
 public:
  explicit OnlineReversal(const OnlineSnapshots& ended);

  /// Reverses `steps` steps from any states held. Throws `ArgumentError` unless these are
  /// ascending, the first one 0 and the last one before `steps`, in slots below `snapshots`, each
  /// in its own.
  OnlineReversal(std::span<const HeldState> held, std::uint32_t steps, std::uint32_t snapshots);

  /// Forward steps of the whole reversal, those with a tape among them and the sweep not.
  std::uint64_t forward_steps() const { return forward_steps_; }

  /// The next action, at the start with no state at hand; nothing when every step is reversed.
  std::optional<ChainAction> next();

 private:
  std::vector<HeldState> held_;       // of gaps that have not been begun
  std::vector<std::uint32_t> slots_;  // that the gap at hand can use, that of its first state last
  std::uint32_t first_;               // state of the gap at hand
  BinomialSchedule gap_;
  std::uint64_t forward_steps_ = 0;
};

}  // namespace palimpsest
