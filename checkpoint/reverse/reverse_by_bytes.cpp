#include <algorithm>
#include <limits>
#include <optional>

#include "checkpoint/chains/binomial.h"
#include "checkpoint/chains/periodic.h"
#include "checkpoint/reverse/agreement.h"
#include "checkpoint/reverse/reverse_run.h"

// States of different sizes. In the sweep, the states to be kept are chosen as `OnlineSnapshots`
// chooses them, for as many states as fit if all are as large as the largest one so far. The state
// given up for another one is the last one whose gap may be joined with the one before. In the
// reversal, a gap is divided where `BinomialSchedule` divides it for as many states as fit then.
//
// With a disk, the chain is divided into pieces as `PeriodicSnapshots` divides it. The first state
// of each piece is written, and the memory then belongs to the states of the next piece. In the
// reversal, a piece begins with its state from disk, which stays there alone if memory is too small
// for it.

namespace palimpsest {
namespace {

/// β(s, r) = C(s + r, s), or the largest number if it is larger.
std::uint64_t longest_chain(std::uint64_t s, std::uint64_t r) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t beta = 1;
  for (std::uint64_t i = 1; i <= std::min(s, r); ++i) {
    const std::uint64_t factor = std::max(s, r) + i;
    if (beta > most / factor) return most;
    beta = beta * factor / i;
  }
  return beta;
}

}  // namespace

std::uint64_t ReverseRun::fitting(Bytes bytes) const {
  const Bytes each = std::max<Bytes>(static_cast<Bytes>(position_.largest_kept), 1);
  return static_cast<std::uint64_t>(std::max<Bytes>(bytes / (each + plan_.entry_bytes), 0));
}

Bytes ReverseRun::room_left() {
  const Bytes count = std::ssize(kept_->tier(KeptStates::Tier::memory));
  return plan_.room - kept_->held_bytes() - count * plan_.entry_bytes;
}

bool ReverseRun::make_room(Bytes bytes) {
  std::vector<KeptState>& held = kept_->tier(KeptStates::Tier::memory);
  const auto units = [&](std::uint64_t first, std::uint64_t last) {
    return (last - first) / plan_.segment;
  };
  while (room_left() < bytes + plan_.entry_bytes) {
    // Without a disk, the plan has room for the first state.
    if (held.size() < 2) return held.empty() && !plan_.costs;
    const std::uint64_t s = std::max<std::uint64_t>(fitting(plan_.room), held.size());
    std::uint64_t end = position_.current;
    std::size_t victim = held.size() - 1;
    for (; victim > 0; --victim) {
      const std::uint64_t joined = units(held[victim - 1].step, end);
      if (joined <= longest_chain(s + 1 - victim, position_.repetitions - 1)) break;
      end = held[victim].step;
    }
    if (victim == 0) {
      ++position_.repetitions;
      continue;
    }
    kept_->drop(held[victim]);
    held.erase(held.begin() + static_cast<std::ptrdiff_t>(victim));
  }
  return true;
}

void ReverseRun::sweep_by_bytes() {
  const std::vector<KeptState>& held = kept_->tier(KeptStates::Tier::memory);
  position_.repetitions = std::max<std::uint64_t>(position_.repetitions, 1);
  while (!is_last()) {
    const std::uint64_t step = position_.current;
    const bool begins_unit = step % plan_.segment == 0;
    if (begins_unit && (held.empty() || held.back().step < step)) {
      if (plan_.costs) begin_piece();
      // With a disk, states may have grown so much that none fits.
      const std::uint64_t s = std::max<std::uint64_t>({fitting(plan_.room), held.size(), 1});
      const std::uint64_t units = (step - position_.piece) / plan_.segment;
      while (longest_chain(s, position_.repetitions) <= units) ++position_.repetitions;
      const std::uint64_t gap = position_.repetitions * plan_.segment;
      const bool is_due =
          held.empty() || fitting(room_left()) > 0 || step - held.back().step >= gap;
      if (is_due) keep_by_bytes(/*for_good=*/false);
    }
    advance_to(step + 1);
  }
  position_.length = position_.left = position_.current;
  seed();
  pause();
}

void ReverseRun::begin_piece() {
  std::vector<KeptState>& on_disk = kept_->tier(KeptStates::Tier::disk);
  const std::uint64_t step = position_.current;
  if (!on_disk.empty()) {
    constexpr std::uint64_t most = std::uint64_t{1} << 30;
    const std::uint64_t s = std::clamp<std::uint64_t>(fitting(plan_.room), 1, most);
    const std::uint64_t period = best_period(static_cast<std::uint32_t>(s), *plan_.costs);
    const std::uint64_t length = position_.piece == 0 ? std::max(period, s) : period;
    if ((step - position_.piece) / plan_.segment < length) return;
  }
  kept_->store(KeptStates::Tier::disk, static_cast<std::uint32_t>(on_disk.size()), step);
  std::vector<KeptState>& held = kept_->tier(KeptStates::Tier::memory);
  for (KeptState& kept : held) kept_->drop(kept);
  held.clear();
  position_.piece = step;
  position_.repetitions = 1;
}

void ReverseRun::keep_by_bytes(bool for_good) {
  const std::uint64_t step = position_.current;
  Bytes agreed[] = {kept_->prepare(step)};
  take_largest(options_.group.get(), agreed);
  const Bytes bytes = agreed[0];
  position_.largest_kept = std::max(position_.largest_kept, static_cast<std::uint64_t>(bytes));
  const bool fits = for_good ? room_left() >= bytes + plan_.entry_bytes : make_room(bytes);
  if (!fits) return;
  kept_->push(step, bytes);
  const auto count = static_cast<std::uint64_t>(std::ssize(kept_->tier(KeptStates::Tier::memory)));
  report_.states_in_memory = std::max(report_.states_in_memory, count);
}

std::uint64_t ReverseRun::split(std::uint64_t first, std::uint64_t last) {
  const std::uint64_t segment = plan_.segment;
  const auto units = static_cast<std::uint32_t>((last - first + segment - 1) / segment);
  const std::uint64_t s = 1 + fitting(room_left());
  BinomialSchedule schedule(units, static_cast<std::uint32_t>(std::min<std::uint64_t>(s, units)));
  std::optional<ChainAction> action = schedule.next();
  while (action->kind != ChainAction::Kind::advance) action = schedule.next();
  return first + action->step * segment;
}

void ReverseRun::reverse_by_bytes() {
  std::vector<KeptState>& held = kept_->tier(KeptStates::Tier::memory);
  std::vector<KeptState>& on_disk = kept_->tier(KeptStates::Tier::disk);
  const auto drop_reversed = [&](std::vector<KeptState>& states) {
    for (; !states.empty() && states.back().step >= position_.left; states.pop_back()) {
      kept_->drop(states.back());
    }
  };
  while (position_.left > 0) {
    drop_reversed(held);
    // A run that continues may be in the middle of a piece.
    if (held.empty() && position_.current == none) {
      drop_reversed(on_disk);
      restore(on_disk.back(), KeptStates::Tier::disk);
      keep_by_bytes(/*for_good=*/false);
    }
    const std::uint64_t last = (position_.left - 1) / plan_.segment * plan_.segment;
    if (position_.current == none) restore(held.back(), KeptStates::Tier::memory);
    std::uint64_t tried = none;  // number of the last state that was to be kept
    while (position_.current < last) {
      const std::uint64_t begin = (held.empty() ? on_disk : held).back().step;
      const std::uint64_t target = split(begin, position_.left);
      // Beyond the target, its state did not fit. A run that continues at it has not tried yet.
      const bool is_behind = position_.current > target || tried == target;
      advance_to(is_behind ? last : target);
      tried = position_.current;
      if (position_.current < last) keep_by_bytes(/*for_good=*/true);
    }
    reverse_unit(last);
    if (!is_whole()) pause();
  }
}

}  // namespace palimpsest
