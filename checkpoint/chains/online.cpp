#include "checkpoint/chains/online.h"

#include <algorithm>
#include <string>

#include "autodiff/error.h"

namespace palimpsest {

// Number the gaps between held states by the snapshots available for their reversal: s for the
// first, s − 1 for the next, and so on. No step of gap j is run more than r times before its tape,
// including the sweep, when the gap has at most β(j, r − 1) steps. If that holds for all gaps, n is
// below the sum of β(j, r − 1) over j from 0 to s, which is β(s, r). So r is the least number
// possible.
//
// While β(s, r − 1) ≤ n < β(s, r), the states at the corners β(s, r − 1), β(s, r − 1) + β(s − 1, r
// − 1), … are held from the moment they are reached. In the end only they and state 0 can be held.
// In between, a state is stored when the last gap is as long as it may be. The state given up for
// it is the last one before it whose gap may be joined with the previous gap. There always is such
// a state: the first one that is not a corner. The gaps before it run from corner to corner. So the
// joined gap would be gap j, and no longer than the β(j, r − 1) steps to the next corner. When r
// grows by one, all gaps fit again.
//
// The number of steps that are run at most q times before their tape is 1 + Σ min(gap j, β(j, q −
// 1)), including step n. The total is the least if that number is β(s, q) for all q < r, that is,
// if gap j has at least β(j, r − 2) steps. For r = 2 that is 1, so nothing is lost. For larger r
// little is lost, because the nearest states are given up first. Gaps after the last corner become
// as long as they may be for as few snapshots as possible. All other slots keep states from before
// the first corner, without loss. They are the corners for r − 1, with gaps of β(j, r − 2) steps
// between them, and β(j, r − 1) after the last one that is left.

OnlineSnapshots::OnlineSnapshots(std::uint32_t snapshots)
    : snapshots_(snapshots), corner_(snapshots), rank_(snapshots) {
  if (snapshots == 0) {
    throw ArgumentError("[online] there are no snapshots; give at least one, for the first state");
  }
}

std::optional<ChainAction> OnlineSnapshots::before_step() {
  const std::uint32_t state = steps_++;
  std::uint32_t slot = state;
  if (state >= snapshots_) {
    if (state == corner_ && rank_ == snapshots_) raise();
    const bool corner = state == corner_;
    if (!corner && state - held_.back().step < longest_[1]) return {};
    slot = give_up();
    if (corner) corner_ += longest_[snapshots_ - rank_++];
  }
  held_.push_back({state, slot});
  return ChainAction{ChainAction::Kind::store, state, slot};
}

// The end of what r repetitions can do is the corner after the last one.
void OnlineSnapshots::raise() {
  longest_.resize(snapshots_ + 1ull, 1);
  for (std::size_t j = 1; j < longest_.size(); ++j) longest_[j] += longest_[j - 1];
  corner_ = longest_.back();
  rank_ = 1;
}

std::uint32_t OnlineSnapshots::give_up() {
  std::uint32_t rank = rank_ - 1;
  std::uint64_t corner = corner_ - longest_[snapshots_ - rank];
  std::uint32_t end = steps_ - 1;
  for (std::size_t k = held_.size() - 1; k > 0; --k) {
    const auto [state, slot] = held_[k];
    if (state == corner) {
      corner -= longest_[snapshots_ - --rank];
    } else if (end - held_[k - 1].step <= longest_[snapshots_ + 1 - k]) {
      held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(k));
      return slot;
    }
    end = state;
  }
  throw InternalError("[online] no held state can be dropped");
}

OnlineReversal::OnlineReversal(const OnlineSnapshots& ended)
    : OnlineReversal(ended.held(), ended.steps(), ended.snapshots()) {}

OnlineReversal::OnlineReversal(std::span<const HeldState> held, std::uint32_t steps,
                               std::uint32_t snapshots)
    : held_(held.begin(), held.end()), first_(steps), gap_(0, 1) {
  std::vector<std::uint32_t> used;
  for (const HeldState& state : held) used.push_back(state.slot);
  std::sort(used.begin(), used.end());
  bool valid = std::adjacent_find(used.begin(), used.end()) == used.end() &&
               (held.empty() ? steps == 0 : held[0].step == 0 && used.back() < snapshots);
  for (std::uint32_t k = 0; valid && k < held.size(); ++k) {
    const std::uint32_t end = k + 1 < held.size() ? held[k + 1].step : steps;
    valid = held[k].step < end;
    if (valid) forward_steps_ += binomial_forward_steps(end - held[k].step, snapshots - k);
  }
  if (!valid) {
    throw ArgumentError(
        "[online] the held states do not suit " + std::to_string(steps) +
        " steps; give them in ascending order from state 0, each in its own slot below " +
        std::to_string(snapshots));
  }
  // No more slots than there are states.
  for (std::uint32_t slot = 0; slot < snapshots && slots_.size() + used.size() < steps; ++slot) {
    if (!std::binary_search(used.begin(), used.end(), slot)) slots_.push_back(slot);
  }
}

std::optional<ChainAction> OnlineReversal::next() {
  using Kind = ChainAction::Kind;
  std::optional<ChainAction> action = gap_.next();
  // The gap's first state is stored already.
  if (action && action->kind == Kind::store && action->step == first_) action = gap_.next();
  if (action) {
    if (action->kind == Kind::store || action->kind == Kind::restore) {
      action->slot = slots_[slots_.size() - 1 - action->slot];
    }
    return action;
  }
  if (held_.empty()) return {};
  const auto [first, slot] = held_.back();
  held_.pop_back();
  slots_.push_back(slot);
  gap_ = BinomialSchedule(first_ - first, static_cast<std::uint32_t>(slots_.size()), first);
  first_ = first;
  return ChainAction{Kind::restore, first, slot};
}

}  // namespace palimpsest
