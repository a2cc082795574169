#pragma once

#include <span>

#include "checkpoint/layout.h"

namespace palimpsest {

/// How much trouble a placement is worth.
struct Effort {
  Bytes enough = 0;     ///< what the arena may take
  double patience = 0;  ///< seconds to go on for once it takes no more
  bool quick = false;   ///< some rounds only, none once it takes no more
};

/// Gives every interval its offset, so that no two overlap in time and space, and returns the bytes
/// the arena takes. `intervals` are in order of `first`.
///
/// First fit in order of time, O(n log n), also with what stays for long below what comes and goes,
/// and, as far as that takes some tenths of a second at most, lowest fit in three orders of size,
/// each repeated with the intervals that stick out moved to the front. The latter is usually within
/// a per cent of what is live at once. When the arena then takes more than enough bytes, but less
/// than a tenth more, the order is improved for as long again. Once it takes no more
/// than enough, each of these goes on for the seconds given at most, or a microsecond an interval
/// when that is more.
Bytes place(std::span<Interval> intervals, const Effort& effort);

}  // namespace palimpsest
