#pragma once

#include <span>

#include "checkpoint/layout.h"

namespace palimpsest {

/// First fit in order of time, those that stay longer than `steps` below all others, so that what
/// stays does not lie about among what comes and goes. `intervals` are in order of `first` and get
/// their offsets; `by_end` has them in order of `last`. Returns the bytes they take. O(n log n).
Bytes place_by_time(std::span<Interval> intervals, std::span<const std::uint32_t> by_end,
                    std::uint32_t steps);

}  // namespace palimpsest
