#pragma once

#include <span>
#include <vector>

#include "checkpoint/layout.h"

namespace palimpsest {

/// Places in `intervals` in order of the last step.
std::vector<std::uint32_t> in_order_of_end(std::span<const Interval> intervals);

/// Calls `start(i)` and `stop(i)` in the order of time, for intervals in order of `first`; at a
/// step that ends one and begins another both are occupied. What lasts to the end is not stopped.
template <class Start, class Stop>
void sweep(std::span<const Interval> intervals, std::span<const std::uint32_t> by_end, Start start,
           Stop stop) {
  std::size_t ended = 0;
  for (std::uint32_t i = 0; i < intervals.size(); ++i) {
    for (; intervals[by_end[ended]].last < intervals[i].first; ++ended) stop(by_end[ended]);
    start(i);
  }
}

}  // namespace palimpsest
