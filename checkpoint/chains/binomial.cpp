#include "checkpoint/chains/binomial.h"

#include <algorithm>

#include "autodiff/error.h"
#include "autodiff/tape.h"

namespace palimpsest {

namespace {

/// Limits `snapshots` to as many as a chain of `steps` can use.
std::uint64_t useful(std::uint32_t steps, std::uint32_t snapshots) {
  if (snapshots == 0) {
    throw ArgumentError(
        "[binomial] there are no snapshots; give at least one, for the first state");
  }
  return std::clamp<std::uint64_t>(snapshots, 1, std::max(steps, 2u) - 1);
}

/// β(s, r − 1) from β(s, r).
std::uint64_t lower(std::uint64_t beta, std::uint64_t s, std::uint64_t r) {
  return r == 0 ? 0 : beta * r / (s + r);
}

struct Repetitions {
  std::uint64_t count = 0;     // r, the least with β(s, r) ≥ n
  std::uint64_t reach = 0;     // β(s, r − 1)
  std::uint64_t advanced = 0;  // Σ (n − β(s, q)) over q < r
};

Repetitions repetitions(std::uint64_t n, std::uint64_t s) {
  if (s == 1 && n > 1) return {n - 1, n - 1, n * (n - 1) / 2};  // β(1, r) = r + 1: no loop
  Repetitions result;
  for (std::uint64_t beta = 1; beta < n;) {
    result.reach = beta;
    result.advanced += n - beta;
    ++result.count;
    // The product is below 2⁶⁴, since β < n < 2³² and s < n.
    beta = beta * (s + result.count) / result.count;
  }
  return result;
}

std::uint32_t narrow(std::uint64_t x) { return static_cast<std::uint32_t>(x); }

}  // namespace

std::uint64_t binomial_forward_steps(std::uint32_t steps, std::uint32_t snapshots) {
  return steps + repetitions(steps, useful(steps, snapshots)).advanced;
}

BinomialSchedule::BinomialSchedule(std::uint32_t steps, std::uint32_t snapshots,
                                   std::uint32_t first)
    : top_(first), last_(first + steps), at_hand_(first), store_(steps > 1) {
  const std::uint64_t s = useful(steps, snapshots);
  const Repetitions r = repetitions(steps, s);
  if (steps > 0) ranges_.push_back({first, first + steps, narrow(s), narrow(r.count), r.reach});
}

std::optional<ChainAction> BinomialSchedule::next() {
  using Kind = ChainAction::Kind;
  if (ranges_.empty()) return {};
  const Range& range = ranges_.back();
  if (store_) {
    store_ = false;
    return ChainAction{Kind::store, top_, slot()};
  }
  if (at_hand_ != top_) {
    at_hand_ = top_;
    return ChainAction{Kind::restore, top_, slot()};
  }
  if (last_ > top_ + 1) {
    if (range.repetitions > 1) {
      split();
    } else {
      ++top_;
    }
    store_ = last_ - top_ > 1;
    at_hand_ = top_;
    return ChainAction{Kind::advance, top_};
  }
  const ChainAction reverse{Kind::reverse, top_};
  at_hand_ = none;
  last_ = top_;
  if (top_ > range.first) {
    --top_;
  } else {
    ranges_.pop_back();
    if (!ranges_.empty()) top_ = ranges_.back().first;
  }
  return reverse;
}

std::uint32_t BinomialSchedule::slot() const {
  return narrow(ranges_.size() - 1) + (top_ - ranges_.back().first);
}

// The last state of a range is not stored: its step is reversed first.
ChainRow BinomialSchedule::take_stores() {
  if (ranges_.back().repetitions > 1 || last_ - top_ < 3) return {};
  const ChainRow row{top_ + 1, slot() + 1, last_ - top_ - 2};
  top_ += row.count;
  at_hand_ = top_;
  return row;
}

// The first state of a range is left to `next`, which ends the range.
ChainRow BinomialSchedule::take_reversals() {
  if (last_ - top_ > 1) return {};
  const ChainRow row{top_, slot(), top_ - ranges_.back().first};
  if (row.count == 0) return {};
  top_ -= row.count;
  last_ = top_ + 1;
  at_hand_ = none;
  return row;
}

// Let n = last − first with β(s, r − 1) < n ≤ β(s, r). Every split into m and n − m steps is
// optimal if β(s, r − 2) ≤ m ≤ β(s, r − 1) and β(s − 1, r − 1) ≤ n − m ≤ β(s − 1, r). The one here
// makes the fewest stores (Griewank and Walther, 2000).
void BinomialSchedule::split() {
  Range& front = ranges_.back();
  const std::uint64_t n = front.last - front.first;
  const std::uint64_t s = front.snapshots;
  const std::uint64_t r = front.repetitions;
  const std::uint64_t front_most = front.reach;                                // β(s, r − 1)
  const std::uint64_t front_least = lower(front_most, s, r - 1);               // β(s, r − 2)
  const std::uint64_t back_least = front_most - front_least;                   // β(s − 1, r − 1)
  const std::uint64_t third = s < 2 ? 0 : back_least * (s - 1) / (s + r - 2);  // β(s − 2, r − 1)
  const std::uint64_t fourth = s < 3 ? 0 : third * (s - 2) / r;                // β(s − 3, r)
  const std::uint64_t most = front_most * (s + r) / r;                         // β(s, r)
  std::uint64_t m = n - back_least - third;
  if (n <= front_most + third) {
    m = std::max<std::uint64_t>(front_least, 1);
  } else if (n >= most - fourth) {
    m = front_most;
  }

  const auto child = [](std::uint64_t first, std::uint64_t length, std::uint64_t snapshots,
                        std::uint64_t repetitions, std::uint64_t reach) {
    if (length <= reach) reach = lower(reach, snapshots, --repetitions);
    return Range{narrow(first), narrow(first + length), narrow(snapshots), narrow(repetitions),
                 reach};
  };
  const std::uint64_t first = front.first;
  const Range back = child(first + m, n - m, s - 1, r, back_least);
  front = child(first, m, s, r - 1, front_least);
  ranges_.push_back(back);
  top_ = back.first;
}

}  // namespace palimpsest
