#pragma once

#include <span>

#include "checkpoint/layout.h"

namespace palimpsest {

/// How long to look for a placement.
struct Effort {
  Bytes enough = 0;     ///< bytes that the arena may take
  double patience = 0;  ///< seconds to go on once the arena fits, at most 0.02
  bool quick = false;   ///< a few trials only, and none once the arena fits
};

/// Gives every interval its offset, so that no two overlap in both time and space. Returns the
/// bytes that the arena takes. `intervals` are in order of `first`.
///
/// - First fit in order of time, O(n log n). It is also tried with long-lived intervals below
///   short-lived ones.
/// - Lowest fit in three orders of size. Each is repeated with the intervals that exceed the bound
///   moved to the front, for 0.1 s each, or 5 µs per interval if that is more. The result is
///   usually within 1 % of the most bytes live at once.
/// - Simulated annealing of the best order for as long again, when the arena still takes more than
///   `enough` bytes, but at most a tenth more.
///
/// Once the arena fits `enough` bytes, each of these continues for `patience` at most, or 1 µs per
/// interval if that is more. Seconds are estimated, not measured, so the result is the same on
/// every machine.
Bytes place(std::span<Interval> intervals, const Effort& effort);

}  // namespace palimpsest
