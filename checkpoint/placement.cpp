#include "checkpoint/placement.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <vector>

namespace palimpsest {

namespace {

std::vector<std::uint32_t> in_order_of_end(std::span<const Interval> intervals) {
  std::vector<std::uint32_t> by_end(intervals.size());
  std::iota(by_end.begin(), by_end.end(), 0u);
  std::sort(by_end.begin(), by_end.end(), [&](std::uint32_t a, std::uint32_t b) {
    return intervals[a].last != intervals[b].last ? intervals[a].last < intervals[b].last : a < b;
  });
  return by_end;
}

/// Calls `start(i)` and `stop(i)` in the order of time; at a step that ends one interval and begins
/// another both are occupied.
template <class Start, class Stop>
void sweep(std::span<const Interval> intervals, std::span<const std::uint32_t> by_end, Start start,
           Stop stop) {
  std::size_t ended = 0;
  for (std::uint32_t i = 0; i < intervals.size(); ++i) {
    for (; intervals[by_end[ended]].last < intervals[i].first; ++ended) stop(by_end[ended]);
    start(i);
  }
}

/// The free space of an arena that grows as needed.
class FreeSpace {
 public:
  /// Lowest hole that fits among the first few, else the tightest one, else the end.
  Bytes take(Bytes bytes) {
    int looked_at = 0;
    for (auto hole = holes_.begin(); hole != holes_.end() && looked_at < 64; ++hole, ++looked_at) {
      if (hole->second >= bytes) return cut(hole, bytes);
    }
    const auto tightest = by_size_.lower_bound({bytes, 0});
    if (tightest != by_size_.end()) return cut(holes_.find(tightest->second), bytes);
    Bytes offset = size_;
    if (!holes_.empty()) {
      const auto last = std::prev(holes_.end());
      if (last->first + last->second == size_) {
        offset = last->first;
        erase(last);
      }
    }
    size_ = offset + bytes;
    return offset;
  }

  void give(Bytes offset, Bytes bytes) {
    auto next = holes_.lower_bound(offset);
    if (next != holes_.end() && next->first == offset + bytes) {
      bytes += next->second;
      next = erase(next);
    }
    if (next != holes_.begin()) {
      const auto previous = std::prev(next);
      if (previous->first + previous->second == offset) {
        offset = previous->first;
        bytes += previous->second;
        erase(previous);
      }
    }
    insert(offset, bytes);
  }

  Bytes size() const { return size_; }

 private:
  using Holes = std::map<Bytes, Bytes>;

  Bytes cut(Holes::iterator hole, Bytes bytes) {
    const auto [offset, size] = *hole;
    erase(hole);
    if (size > bytes) insert(offset + bytes, size - bytes);
    return offset;
  }
  void insert(Bytes offset, Bytes bytes) {
    holes_.emplace(offset, bytes);
    by_size_.emplace(bytes, offset);
  }
  Holes::iterator erase(Holes::iterator hole) {
    by_size_.erase({hole->second, hole->first});
    return holes_.erase(hole);
  }

  Holes holes_;                                // offset, bytes
  std::set<std::pair<Bytes, Bytes>> by_size_;  // bytes, offset
  Bytes size_ = 0;
};

/// First fit in order of time, those that stay longer than `steps` below all others: what stays
/// does not lie about among what comes and goes.
Bytes place_by_time(std::span<Interval> intervals, std::span<const std::uint32_t> by_end,
                    std::uint32_t steps) {
  FreeSpace staying, passing;
  const auto stays = [&](const Interval& one) { return one.last - one.first > steps; };
  const auto space = [&](const Interval& one) -> FreeSpace& {
    return stays(one) ? staying : passing;
  };
  sweep(
      intervals, by_end,
      [&](std::uint32_t i) {
        intervals[i].offset = space(intervals[i]).take(laid_out(intervals[i].bytes));
      },
      [&](std::uint32_t i) {
        space(intervals[i]).give(intervals[i].offset, laid_out(intervals[i].bytes));
      });
  for (Interval& interval : intervals) {
    if (!stays(interval)) interval.offset += staying.size();
  }
  return staying.size() + passing.size();
}

/// Lowest fit in any order.
class LowestFit {
 public:
  LowestFit(std::span<Interval> intervals, std::span<const std::uint32_t> by_end)
      : intervals_(intervals), end_(intervals.size()), leaves_(std::bit_ceil(intervals.size())) {
    Bytes live = 0;
    std::uint32_t started = 0;
    std::uint32_t stopped = 0;
    sweep(
        intervals, by_end,
        [&](std::uint32_t i) {
          ++started;
          pairs_ += started - 1 - stopped;
          bound_ = std::max(bound_, live += laid_out(intervals[i].bytes));
        },
        [&](std::uint32_t i) {
          ++stopped;
          end_[i] = started;
          live -= laid_out(intervals[i].bytes);
        });
    for (std::uint32_t& end : end_) {
      if (end == 0) end = started;
    }
  }

  /// Most bytes occupied at once: no placement takes less.
  Bytes bound() const { return bound_; }
  /// Seconds that one placement takes, roughly.
  double seconds() const { return std::min(by_scan(), by_index()); }

  Bytes place(std::span<const std::uint32_t> order) {
    return by_scan() < by_index() ? place_by_scan(order) : place_by_index(order);
  }

 private:
  struct Block {
    Bytes begin, end;
    std::uint32_t first, last;
    bool operator<(const Block& other) const { return begin < other.begin; }
  };

  double by_scan() const {
    const double count = static_cast<double>(intervals_.size());
    return 0.5e-9 * count * count;
  }
  double by_index() const {
    return 1e-8 * static_cast<double>(pairs_) + 3e-7 * static_cast<double>(intervals_.size());
  }

  /// Looks at all blocks placed so far, kept in order of offset.
  Bytes place_by_scan(std::span<const std::uint32_t> order) {
    std::vector<Block> placed;
    placed.reserve(order.size());
    Bytes size = 0;
    for (const std::uint32_t i : order) {
      const Block block = put(i, placed);
      placed.insert(std::upper_bound(placed.begin(), placed.end(), block), block);
      size = std::max(size, block.end);
    }
    return size;
  }

  /// Looks at those only that are there at the same time. Interval i occupies [i, end_[i]) of the
  /// row of intervals: two meet in time just when these do.
  Bytes place_by_index(std::span<const std::uint32_t> order) {
    std::vector<std::vector<std::uint32_t>> covering(2 * leaves_);  // nodes of a segment tree
    std::vector<bool> placed(intervals_.size());
    std::vector<Block> blocks;
    Bytes size = 0;
    const auto add = [&](std::uint32_t j) {
      blocks.push_back({intervals_[j].offset, intervals_[j].offset + laid_out(intervals_[j].bytes),
                        intervals_[j].first, intervals_[j].last});
    };
    for (const std::uint32_t i : order) {
      blocks.clear();
      for (std::size_t node = i + leaves_; node > 0; node >>= 1) {
        for (const std::uint32_t j : covering[node]) add(j);
      }
      for (std::uint32_t j = i + 1; j < end_[i]; ++j) {
        if (placed[j]) add(j);
      }
      std::sort(blocks.begin(), blocks.end());
      size = std::max(size, put(i, blocks).end);
      placed[i] = true;
      std::size_t begin = i + leaves_;
      for (std::size_t end = end_[i] + leaves_; begin < end; begin >>= 1, end >>= 1) {
        if (begin & 1) covering[begin++].push_back(i);
        if (end & 1) covering[--end].push_back(i);
      }
    }
    return size;
  }

  /// Puts interval i below, between or above `blocks`, which are in order of offset.
  Block put(std::uint32_t i, const std::vector<Block>& blocks) {
    Interval& interval = intervals_[i];
    const Bytes bytes = laid_out(interval.bytes);
    Bytes offset = 0;
    for (const Block& block : blocks) {
      if (block.last < interval.first || interval.last < block.first) continue;
      if (block.begin - offset >= bytes) break;
      offset = std::max(offset, block.end);
    }
    interval.offset = offset;
    return {offset, offset + bytes, interval.first, interval.last};
  }

  std::span<Interval> intervals_;
  std::vector<std::uint32_t> end_;  // by interval, the first later one that begins after its end
  std::size_t leaves_;
  std::uint64_t pairs_ = 0;  // of intervals that meet in time
  Bytes bound_ = 0;
};

}  // namespace

Bytes place(std::span<Interval> intervals, Bytes enough, double patience) {
  constexpr int most_rounds = 16;
  constexpr int most_trials = 300;
  constexpr int most_vain = 60;

  if (intervals.empty()) return 0;
  const std::vector<std::uint32_t> by_end = in_order_of_end(intervals);
  Bytes best = place_by_time(intervals, by_end, none);
  std::vector<Interval> trial(intervals.begin(), intervals.end());
  LowestFit fit(trial, by_end);
  const Bytes good = fit.bound() + fit.bound() / 512;
  const auto keep = [&](Bytes size) {
    if (size >= best) return false;
    best = size;
    std::copy(trial.begin(), trial.end(), intervals.begin());
    return true;
  };
  for (std::uint32_t steps = intervals.back().first / 4; steps > 0 && best > good; steps /= 4) {
    keep(place_by_time(trial, by_end, steps));
  }
  const auto affordable = [&](int most) {
    const double few = 1e-6 * static_cast<double>(intervals.size());
    const double seconds =
        best > enough ? std::max(0.1, 5 * few) : std::max(std::min(0.02, patience), few);
    return static_cast<int>(std::min<double>(most, seconds / fit.seconds()));
  };
  const auto sticks_out = [&](Bytes above) {
    return
        [&, above](std::uint32_t i) { return trial[i].offset + laid_out(trial[i].bytes) > above; };
  };

  std::vector<std::uint32_t> order(intervals.size());
  std::iota(order.begin(), order.end(), 0u);
  std::vector<std::uint32_t> best_order = order;
  const auto try_order = [&] {
    if (keep(fit.place(order))) best_order = order;
  };
  const auto steps = [&](std::uint32_t i) {
    return static_cast<double>(intervals[i].last - intervals[i].first + 1);
  };
  std::vector<double> rank(intervals.size());
  for (const double weight : {0.0, 1.0, 0.5}) {
    if (affordable(1) == 0 || best <= good) break;
    // The same beginning however many rounds the weight before had: what fits in one size is found
    // again in a larger one.
    std::iota(order.begin(), order.end(), 0u);
    for (std::uint32_t i = 0; i < rank.size(); ++i) {
      rank[i] = static_cast<double>(intervals[i].bytes) * std::pow(steps(i), weight);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return rank[a] > rank[b]; });
    for (int round = 0; round < affordable(most_rounds) && best > good; ++round) {
      try_order();
      std::stable_partition(order.begin(), order.end(), sticks_out(fit.bound()));
    }
  }
  // Every other trial starts from the best order; what sticks out goes to the front. The trials do
  // not depend on `enough`, so that what fits in one size fits in a larger one.
  std::minstd_rand random;
  int vain = 0;  // trials since the last that helped
  for (int left = affordable(most_trials);
       left > 0 && vain < most_vain && best > enough && best - enough < enough / 100; --left) {
    if (left % 2 == 0) order = best_order;
    for (int swaps = 1 + static_cast<int>(random() % 3); swaps > 0; --swaps) {
      const std::size_t from = random() % order.size();
      std::rotate(order.begin() + random() % (from + 1), order.begin() + from,
                  order.begin() + from + 1);
    }
    fit.place(order);
    std::stable_partition(order.begin(), order.end(), sticks_out(best - 1));
    const Bytes before = best;
    try_order();
    vain = best < before ? 0 : vain + 1;
  }
  return best;
}

}  // namespace palimpsest
