#include "checkpoint/chains/periodic.h"

#include <algorithm>
#include <limits>

namespace palimpsest {

// The cost of a piece, and so the cost per step, has a bend where the number of repetitions grows:
// at lengths β(s, r). It falls up to the best length and rises after it.
std::uint32_t best_period(std::uint32_t snapshots, DiskCosts costs) {
  require_valid(costs);
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max() / 2;
  const auto cost_a_step = [&](std::uint64_t length) {
    const auto steps = binomial_forward_steps(static_cast<std::uint32_t>(length), snapshots);
    const auto l = static_cast<double>(length);
    return (l + costs.write + costs.read + static_cast<double>(steps)) / l;
  };
  std::uint64_t best = 1;
  double least = cost_a_step(best);
  std::uint64_t beta = 1;
  for (std::uint64_t r = 1; beta < most; ++r) {
    beta = std::min(most, beta * (snapshots + r) / r);
    const double cost = cost_a_step(beta);
    if (cost >= least) break;
    least = cost;
    best = beta;
  }
  return static_cast<std::uint32_t>(best);
}

PeriodicSnapshots::PeriodicSnapshots(std::uint32_t snapshots, DiskCosts costs)
    : period_(best_period(snapshots, costs)),
      first_length_(std::max(period_, snapshots)),
      piece_(snapshots),
      stores_{} {}

std::span<const ChainAction> PeriodicSnapshots::before_step() {
  if (piece_.steps() == (number_ == 0 ? first_length_ : period_)) {
    first_ += piece_.steps();
    ++number_;
    piece_ = OnlineSnapshots(piece_.snapshots());
  }
  std::size_t count = 0;
  if (piece_.steps() == 0) {
    stores_[count++] = {ChainAction::Kind::store, first_, number_, ChainAction::Tier::disk};
  }
  if (const std::optional<ChainAction> store = piece_.before_step()) {
    stores_[count] = *store;
    stores_[count++].step += first_;
  }
  return std::span(stores_).first(count);
}

PeriodicReversal::PeriodicReversal(const PeriodicSnapshots& ended)
    : period_(ended.period_),
      first_length_(ended.first_length_),
      snapshots_(ended.piece_.snapshots()),
      first_(ended.first_),
      number_(ended.number_),
      last_(ended.piece_),
      forward_steps_(last_.forward_steps()) {
  if (number_ == 0) return;
  forward_steps_ += (number_ - 1) * binomial_forward_steps(period_, snapshots_) +
                    binomial_forward_steps(first_length_, snapshots_);
}

std::optional<ChainAction> PeriodicReversal::next() {
  if (piece_) {
    if (const std::optional<ChainAction> action = piece_->next()) return action;
  } else if (std::optional<ChainAction> action = last_.next()) {
    action->step += first_;
    return action;
  }
  const std::optional<ChainAction> read = next_read();
  if (read) {
    piece_.emplace(first_ - read->step, snapshots_, read->step);
    first_ = read->step;
    --number_;
  }
  return read;
}

std::optional<ChainAction> PeriodicReversal::next_read() const {
  if (number_ == 0) return {};
  const std::uint32_t first = number_ == 1 ? 0 : first_ - period_;
  return ChainAction{ChainAction::Kind::restore, first, number_ - 1, ChainAction::Tier::disk};
}

}  // namespace palimpsest
