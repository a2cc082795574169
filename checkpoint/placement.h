#pragma once

#include <span>

#include "checkpoint/layout.h"

namespace palimpsest {

/// How long to look for a placement.
struct Effort {
  Bytes enough = 0;     ///< what the arena may take
  double patience = 0;  ///< seconds to go on for once it takes no more
  bool quick = false;   ///< a few trials only, and none once it takes no more
};

/// Gives every interval its offset, so that no two overlap in time and space, and returns the bytes
/// the arena takes. `intervals` are in order of `first`.
///
/// First fit in order of time, O(n log n), also with what stays for long below what comes and goes.
/// Then lowest fit in three orders of size, each repeated with the intervals that stick out moved
/// to the front, for a tenth of a second each: usually within a per cent of what is live at once.
/// When the arena still takes more than enough bytes, but less than a tenth more, the best order is
/// improved by simulated annealing for as long again. Once it takes no more than enough, each of
/// these goes on for the seconds of patience at most, or a microsecond an interval when that is
/// more. Seconds are estimated, not measured: the result is the same on every machine.
Bytes place(std::span<Interval> intervals, const Effort& effort);

}  // namespace palimpsest
