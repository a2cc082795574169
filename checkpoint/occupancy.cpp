#include "checkpoint/occupancy.h"

#include <algorithm>
#include <numeric>

namespace palimpsest {

std::vector<std::uint32_t> in_order_of_end(std::span<const Interval> intervals) {
  std::vector<std::uint32_t> by_end(intervals.size());
  std::iota(by_end.begin(), by_end.end(), 0u);
  std::sort(by_end.begin(), by_end.end(), [&](std::uint32_t a, std::uint32_t b) {
    return intervals[a].last != intervals[b].last ? intervals[a].last < intervals[b].last : a < b;
  });
  return by_end;
}

}  // namespace palimpsest
