#include "checkpoint/occupancy.h"

#include <algorithm>
#include <numeric>

namespace palimpsest {

std::vector<std::uint32_t> in_order_of_end(std::span<const Interval> intervals) {
  std::vector<std::uint32_t> by_end(intervals.size());
  std::uint32_t steps = 0;
  for (const Interval& interval : intervals) steps = std::max(steps, interval.last + 1);
  if (steps > 8 * intervals.size()) {
    std::iota(by_end.begin(), by_end.end(), 0u);
    std::ranges::stable_sort(by_end, {}, [&](std::uint32_t i) { return intervals[i].last; });
    return by_end;
  }
  // Counting sort is faster when there are many intervals.
  std::vector<std::uint32_t> place(std::size_t{steps} + 1);
  for (const Interval& interval : intervals) ++place[interval.last + 1];
  std::partial_sum(place.begin(), place.end(), place.begin());
  for (std::uint32_t i = 0; i < intervals.size(); ++i) by_end[place[intervals[i].last]++] = i;
  return by_end;
}

}  // namespace palimpsest
