#pragma once

#include <span>
#include <vector>

#include "checkpoint/layout.h"

namespace palimpsest {

/// Indices into `intervals`, in order of the last step.
std::vector<std::uint32_t> in_order_of_end(std::span<const Interval> intervals);

/// Calls `start(i)` and `stop(i)` in order of time, for intervals in order of `first`. At a step
/// that ends one interval and begins another, both are occupied. `stop` is not called for intervals
/// that are still occupied when the last one begins.
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
