#include "checkpoint/layout.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace palimpsest {

namespace {

/// The intervals of a schedule by first step; offsets are still 0.
std::vector<Interval> intervals_of(const Graph& graph, const Schedule& schedule) {
  std::vector<Interval> intervals;
  std::vector<std::uint32_t> open(graph.value_count(), none);
  std::vector<std::uint32_t> holders(graph.value_count());
  std::vector<bool> live(graph.value_count());
  const auto end = static_cast<std::uint32_t>(std::max<std::size_t>(schedule.steps.size(), 1)) - 1;

  const auto revive = [&](ValueId value, std::uint32_t step) {
    if (live[value]) return;
    live[value] = true;
    const ValueId root = graph.storage(value);
    if (holders[root]++ > 0 || graph.bytes(root) == 0) return;
    open[root] = static_cast<std::uint32_t>(intervals.size());
    intervals.push_back({root, step, end, graph.bytes(root)});
  };
  for (ValueId value = 0; value < graph.value_count(); ++value) {
    if (graph.is_present(value)) revive(value, 0);
  }
  for (std::uint32_t k = 0; k < schedule.steps.size(); ++k) {
    const Step step = schedule.steps[k];
    if (step.kind == Step::Kind::compute) {
      for (std::uint32_t i = 0; i < graph.output_count(step.id); ++i) {
        revive(graph.first_output(step.id) + i, k);
      }
      if (const Bytes bytes = graph.workspace(step.id); bytes > 0) {
        intervals.push_back({Interval::workspace, k, k, bytes});
      }
    } else {
      live[step.id] = false;
      const ValueId root = graph.storage(step.id);
      if (--holders[root] == 0 && graph.bytes(root) > 0) intervals[open[root]].last = k;
    }
  }
  return intervals;
}

/// Calls `start(i)` and `stop(i)` in the order of time; at a step that ends one interval and begins
/// another both are occupied.
template <class Start, class Stop>
void sweep(const std::vector<Interval>& intervals, Start start, Stop stop) {
  std::vector<std::uint32_t> by_end(intervals.size());
  std::iota(by_end.begin(), by_end.end(), 0u);
  std::sort(by_end.begin(), by_end.end(), [&](std::uint32_t a, std::uint32_t b) {
    return intervals[a].last < intervals[b].last;
  });
  std::size_t ended = 0;
  for (std::uint32_t i = 0; i < intervals.size(); ++i) {
    for (; intervals[by_end[ended]].last < intervals[i].first; ++ended) stop(by_end[ended]);
    start(i);
  }
}

/// Most bytes occupied at once, each interval rounded up: no layout is smaller.
Bytes lower_bound_of(const std::vector<Interval>& intervals) {
  Bytes live = 0;
  Bytes peak = 0;
  sweep(
      intervals,
      [&](std::uint32_t i) { peak = std::max(peak, live += laid_out(intervals[i].bytes)); },
      [&](std::uint32_t i) { live -= laid_out(intervals[i].bytes); });
  return peak;
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

/// First fit in order of time. O(n log n).
Bytes place_by_time(std::vector<Interval>& intervals) {
  FreeSpace space;
  sweep(
      intervals,
      [&](std::uint32_t i) { intervals[i].offset = space.take(laid_out(intervals[i].bytes)); },
      [&](std::uint32_t i) { space.give(intervals[i].offset, laid_out(intervals[i].bytes)); });
  return space.size();
}

/// Gives each interval, in the given order, the lowest place that is free all the time it needs it.
/// Quadratic with a small constant.
Bytes place_in_order(std::vector<Interval>& intervals, std::span<const std::uint32_t> order) {
  struct Placed {
    Bytes begin, end;
    std::uint32_t first, last;
  };
  std::vector<Placed> placed;  // by offset
  placed.reserve(intervals.size());
  Bytes size = 0;
  for (const std::uint32_t i : order) {
    Interval& interval = intervals[i];
    const Bytes bytes = laid_out(interval.bytes);
    Bytes offset = 0;
    for (const Placed& other : placed) {
      if (other.last < interval.first || interval.last < other.first) continue;
      if (other.begin - offset >= bytes) break;
      offset = std::max(offset, other.end);
    }
    const auto at = std::upper_bound(placed.begin(), placed.end(), offset,
                                     [](Bytes a, const Placed& b) { return a < b.begin; });
    placed.insert(at, {offset, offset + bytes, interval.first, interval.last});
    interval.offset = offset;
    size = std::max(size, offset + bytes);
  }
  return size;
}

}  // namespace

Layout lay_out(const Graph& graph, const Schedule& schedule) {
  constexpr std::size_t largest_quadratic = 6000;
  constexpr int repairs = 16;

  Layout best{intervals_of(graph, schedule)};
  std::vector<Interval>& intervals = best.intervals;
  const Bytes bound = lower_bound_of(intervals);
  best.size = place_by_time(intervals);
  if (best.size == bound || intervals.size() > largest_quadratic) return best;

  // Large ones first; then, as long as that overshoots, those that stick out first.
  std::vector<Interval> trial = intervals;
  std::vector<std::uint32_t> order(intervals.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return intervals[a].bytes > intervals[b].bytes;
  });
  for (int round = 0; round <= repairs && best.size > bound; ++round) {
    const Bytes size = place_in_order(trial, order);
    if (size < best.size) {
      best.size = size;
      intervals = trial;
    }
    std::stable_partition(order.begin(), order.end(), [&](std::uint32_t i) {
      return trial[i].offset + laid_out(trial[i].bytes) > bound;
    });
  }
  return best;
}

}  // namespace palimpsest
