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

/// Online checkpointing: chooses the states to hold of a chain of equal steps whose length is
/// unknown until it ends. `snapshots` states are held at a time, always including state 0.
///
/// The length n becomes known when state n is current, which need not be reversed. If n had been
/// known, the sweep and the reversal together would take at least `binomial_forward_steps(n + 1,
/// snapshots) - 1`, because step n is reversed for free. With s snapshots, let r be the least
/// number for which β(s, r) > n. Then:
///
/// - No step is run more than r times before its tape. No choice allows fewer, for any n (Wang,
///   Moin and Iaccarino, 2009). So (r + 1) n forward steps suffice, which is β(s + 1, r − 1) − r
///   above the least.
/// - For r ≤ 2, that is n < (s + 1)(s + 2)/2, the forward steps are the least (Stumm and Walther,
///   2010). For larger n no choice gives the least for every n. In all cases tried, this one was at
///   most 3 above the least for r = 3, 17 for r = 4, 72 for r = 5, and at most 10 % for any r.
///
/// From r = 2 on, about one state in r is stored. A step takes amortised O(1), and O(log s) while r
/// = 2. Memory: the entries held, and as many numbers once all slots are in use.
class OnlineSnapshots {
 public:
  /// Throws `ArgumentError` for no snapshots.
  explicit OnlineSnapshots(std::uint32_t snapshots);

  /// Call it before running step `steps()` from the current state. Returns the store to carry out
  /// first, if any. It overwrites its slot.
  std::optional<ChainAction> before_step();

  std::uint32_t snapshots() const { return snapshots_; }

  /// Number of calls of `before_step`: the length of the chain if it has ended.
  std::uint32_t steps() const { return steps_; }

  /// By step, ascending.
  std::span<const HeldState> held() const { return held_; }

 private:
  void raise();
  std::uint32_t give_up();

  std::uint32_t snapshots_;
  std::uint32_t steps_ = 0;
  std::vector<HeldState> held_;
  std::vector<std::uint64_t> longest_;  // longest gap with j snapshots left: β(j, r − 1)
  std::uint64_t corner_;                // the next state that is stored to stay until r grows
  std::uint32_t rank_;                  // number of that state among these, from 1
};

/// The reversal of a chain that has ended, from the states that are held. It is the schedule with
/// the fewest forward steps, one action at a time. Gaps between held states are reversed from the
/// last to the first, each by a `BinomialSchedule` in the slots that are free by then. O(1) per
/// action.
class OnlineReversal {
 public:
  explicit OnlineReversal(const OnlineSnapshots& ended);

  /// Reverses `steps` steps from any held states. Throws `ArgumentError` unless the states are
  /// ascending, begin with state 0 and end before `steps`, and each has its own slot below
  /// `snapshots`.
  OnlineReversal(std::span<const HeldState> held, std::uint32_t steps, std::uint32_t snapshots);

  /// Forward steps of the whole reversal, including those with a tape, without the sweep.
  std::uint64_t forward_steps() const { return forward_steps_; }

  /// The next action; nothing when every step is reversed. At the start no state is current.
  std::optional<ChainAction> next();

 private:
  std::vector<HeldState> held_;       // of gaps that have not been begun
  std::vector<std::uint32_t> slots_;  // that the current gap can use, that of its first state last
  std::uint32_t first_;               // first state of the current gap
  BinomialSchedule gap_;
  std::uint64_t forward_steps_ = 0;
};

}  // namespace palimpsest
