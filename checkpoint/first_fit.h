#pragma once

#include <span>

#include "checkpoint/layout.h"

namespace palimpsest {

/// First fit in order of time. Intervals longer than `steps` lie below all others, so that
/// long-lived ones do not fragment the space of short-lived ones. `intervals` are in order of
/// `first` and get their offsets; `by_end` has them in order of `last`. Returns the bytes they
/// take. O(n log n).
Bytes place_by_time(std::span<Interval> intervals, std::span<const std::uint32_t> by_end,
                    std::uint32_t steps);

}  // namespace palimpsest
