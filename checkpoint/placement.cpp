#include "checkpoint/placement.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "checkpoint/first_fit.h"
#include "checkpoint/lowest_fit.h"
#include "checkpoint/occupancy.h"
#include "checkpoint/planning_stop.h"

namespace palimpsest {

namespace {

/// True when the placement so far need not be improved. The sequence of trials does not depend on
/// `enough`; it only ends at the first that fits. So what fits in one size also fits in a larger
/// one.
bool is_good(Bytes best, Bytes bound, const Effort& effort) {
  const bool close = best <= bound + bound / 512;
  if (best <= effort.enough) return close || effort.quick;
  return close && effort.enough < bound;
}

/// Searches for an order in which lowest fit takes few bytes.
class Orders {
 public:
  using Order = std::vector<std::uint32_t>;
  /// An interval, and the one before which it is placed.
  using Move = std::pair<std::uint32_t, std::uint32_t>;
  /// By move, a lower bound on the height of the resulting placement.
  using Heights = std::map<Move, double>;

  /// `with_all` places the intervals in an order, then all other intervals, and returns the total
  /// bytes.
  Orders(std::vector<Interval> intervals, const Effort& effort,
         std::function<Bytes(const Order&)> with_all)
      : intervals_(std::move(intervals)),
        fit_(intervals_, in_order_of_end(intervals_)),
        effort_(effort),
        with_all_(std::move(with_all)),
        order_(intervals_.size()) {}

  Orders(const Orders&) = delete;
  Orders& operator=(const Orders&) = delete;

  /// Searches for placements of fewer bytes than `best`, each better than the previous one.
  void improve(Bytes best) {
    best_ = best;
    for (const double weight : {0.0, 1.0, 0.5}) {
      if (affordable(1) == 0 || is_good(best_, fit_.bound(), effort_)) break;
      by_rank(weight);
    }
    if (!effort_.quick && !is_good(best_, fit_.bound(), effort_)) anneal();
  }

 private:
  int affordable(int most) const {
    const double few = 1e-6 * static_cast<double>(intervals_.size());
    double seconds = std::max(0.1, 5 * few);
    if (effort_.quick) {
      constexpr int most_far_off = 3;
      if (best_ > effort_.enough + effort_.enough / 50) most = std::min(most, most_far_off);
      seconds = 4 * few;
    } else if (best_ <= effort_.enough) {
      seconds = std::max(std::min(0.02, effort_.patience), few);
    }
    return static_cast<int>(std::min<double>(most, seconds / fit_.seconds()));
  }

  /// Moves intervals that exceed the bound to the front.
  void lift() {
    std::stable_partition(order_.begin(), order_.end(),
                          [&](std::uint32_t i) { return above_bound(intervals_[i]) > 0; });
  }

  /// `stop` is asked only when the order is no better than the best.
  LowestFit::Taken try_order(const LowestFit::Stop& stop = {}) {
    const LowestFit::Taken taken = fit_.place(order_, stop);
    if (taken.size >= best_) return taken;
    const Bytes size = with_all_(order_);
    if (size >= best_) return taken;
    best_ = size;
    best_order_ = order_;
    return taken;
  }

  /// The start does not depend on the number of rounds before, so what fits in one size is found
  /// again in a larger one.
  void by_rank(double weight) {
    constexpr int most_rounds = 16;
    std::vector<double> rank(order_.size());
    for (std::uint32_t i = 0; i < rank.size(); ++i) {
      const double steps = static_cast<double>(intervals_[i].last - intervals_[i].first + 1);
      rank[i] = static_cast<double>(intervals_[i].bytes) * std::pow(steps, weight);
    }
    std::iota(order_.begin(), order_.end(), 0u);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return rank[a] > rank[b]; });
    for (int round = 0; round < affordable(most_rounds); ++round) {
      PlanningStop::check();
      try_order();
      if (is_good(best_, fit_.bound(), effort_)) return;
      lift();
    }
  }

  /// Simulated annealing from the best order: an interval that exceeds the bound is placed before
  /// one that is in its way. The trials do not depend on `enough`, so what fits in one size also
  /// fits in a larger one.
  void anneal() {
    constexpr int most_trials = 1000;
    constexpr double hottest = 0.03;  // of the bytes occupied at once
    const int trials = affordable(most_trials);
    if (best_order_.empty() || best_ - effort_.enough > effort_.enough / 10) return;
    std::mt19937 random;
    Order current = best_order_;
    double current_height = height(fit_.place(current));
    find_out();
    Heights known;  // of moves from the current order
    for (int trial = 0; trial < trials && best_ > effort_.enough && !out_.empty(); ++trial) {
      PlanningStop::check();
      order_ = current;
      const std::optional<Move> move = advance(out_[random() % out_.size()], random);
      if (!move) continue;
      const double left = static_cast<double>(trials - trial) / trials;
      const double luck = static_cast<double>(random()) * 0x1p-32;
      const auto refused = [&](double height) {
        const double change = (height - current_height) / static_cast<double>(fit_.bound());
        return luck >= std::exp(-change / (hottest * left));
      };
      // Most moves are refused, usually because of what the first intervals take already.
      double& least = known.try_emplace(*move, 0.0).first->second;
      if (refused(least)) continue;
      const auto is_futile = [&](const LowestFit::Taken& taken) {
        return taken.size >= best_ && refused(height(taken));
      };
      least = height(try_order(is_futile));
      if (refused(least)) continue;
      current = order_;
      current_height = least;
      known.clear();
      find_out();
    }
  }

  /// Moves an interval before one of its predecessors that overlap it in time, if there is one.
  std::optional<Move> advance(std::uint32_t interval, std::mt19937& random) {
    const Interval& one = intervals_[interval];
    const auto from = std::find(order_.begin(), order_.end(), interval);
    before_.clear();
    for (auto other = order_.begin(); other != from; ++other) {
      const Interval& met = intervals_[*other];
      if (met.first <= one.last && one.first <= met.last) before_.push_back(other);
    }
    if (before_.empty()) return {};
    const Order::iterator to = before_[random() % before_.size()];
    const Move move{interval, *to};
    std::rotate(to, from, from + 1);
    return move;
  }

  Bytes above_bound(const Interval& one) const {
    return std::max<Bytes>(one.offset + laid_out(one.bytes) - fit_.bound(), 0);
  }
  /// The bytes taken above the bound, plus a part of the excess of all intervals.
  double height(const LowestFit::Taken& taken) const {
    constexpr double part = 0.3;
    const Bytes most = std::max<Bytes>(taken.size - fit_.bound(), 0);
    return static_cast<double>(most) + part * static_cast<double>(taken.above);
  }
  void find_out() {
    out_.clear();
    for (std::uint32_t i = 0; i < intervals_.size(); ++i) {
      if (above_bound(intervals_[i]) > 0) out_.push_back(i);
    }
  }

  std::vector<Interval> intervals_;
  LowestFit fit_;
  Effort effort_;
  std::function<Bytes(const Order&)> with_all_;
  Bytes best_ = 0;
  Order order_, best_order_;
  std::vector<Order::iterator> before_;  // predecessors in the way of an interval
  std::vector<std::uint32_t> out_;       // intervals that exceed the bound
};

/// The intervals without the smallest ones, which together take at most `bytes`.
std::vector<std::uint32_t> without_dust(std::span<const Interval> intervals, Bytes bytes) {
  std::vector<std::uint32_t> by_size(intervals.size());
  std::iota(by_size.begin(), by_size.end(), 0u);
  std::stable_sort(by_size.begin(), by_size.end(), [&](std::uint32_t a, std::uint32_t b) {
    return intervals[a].bytes < intervals[b].bytes;
  });
  auto rest = by_size.begin();
  while (rest != by_size.end() && (bytes -= laid_out(intervals[*rest].bytes)) >= 0) ++rest;
  by_size.erase(by_size.begin(), rest);
  std::sort(by_size.begin(), by_size.end());
  return by_size;
}

}  // namespace

Bytes place(std::span<Interval> intervals, const Effort& effort) {
  if (intervals.empty()) return 0;
  const std::vector<std::uint32_t> by_end = in_order_of_end(intervals);
  Bytes best = place_by_time(intervals, by_end, none);
  std::vector<Interval> trial(intervals.begin(), intervals.end());
  LowestFit fit(trial, by_end);
  const auto keep = [&](Bytes size) {
    if (size < best) {
      best = size;
      std::copy(trial.begin(), trial.end(), intervals.begin());
    }
    return size;
  };
  // With few intervals, these are hardly ever the best.
  if (!effort.quick || fit.seconds() > 1e-6 * static_cast<double>(intervals.size())) {
    for (std::uint32_t steps = intervals.back().first / 4; steps > 0; steps /= 4) {
      if (is_good(best, fit.bound(), effort)) break;
      keep(place_by_time(trial, by_end, steps));
    }
  }
  if (is_good(best, fit.bound(), effort)) return best;

  // Tiny intervals are placed after all others.
  const std::vector<std::uint32_t> large = without_dust(intervals, fit.bound() / 1024);
  std::vector<Interval> of_size;
  for (const std::uint32_t i : large) of_size.push_back(intervals[i]);
  const auto with_all = [&](std::vector<std::uint32_t> order) {
    std::vector<bool> taken(intervals.size());
    for (std::uint32_t& i : order) taken[i = large[i]] = true;
    for (std::uint32_t i = 0; i < intervals.size(); ++i) {
      if (!taken[i]) order.push_back(i);
    }
    return keep(fit.place(order).size);
  };
  Orders(std::move(of_size), effort, with_all).improve(best);
  return best;
}

}  // namespace palimpsest
