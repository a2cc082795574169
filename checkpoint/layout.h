#pragma once

#include <optional>
#include <vector>

#include "autodiff/export.h"
#include "checkpoint/schedule.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Bytes that a storage of `bytes` takes in a layout.
constexpr Bytes laid_out(Bytes bytes) {
  constexpr Bytes unit = buffer_alignment;
  return (bytes + unit - 1) / unit * unit;
}

/// A range of steps during which a storage, or a step's workspace, occupies memory.
struct Interval {
  static constexpr ValueId workspace = none;

  ValueId storage;      ///< root of the storage, or `workspace`
  std::uint32_t first;  ///< step that makes it; 0 for values present at the start
  std::uint32_t last;   ///< last step during which it is occupied: its drop, or the final step
  Bytes bytes;
  Bytes offset = 0;                 ///< from the start of the arena, a multiple of 64
  std::uint32_t takes_over = none;  ///< the interval in whose place it lies from `first` on
};

/// The position of everything in one arena while a schedule runs. Intervals that overlap in time
/// never overlap in space, so buffers need no allocator and fragmentation cannot break the budget.
/// There is one exception: an output that takes over a storage (see `simulate`) lies in its place.
/// From the step that makes it on, the two occupy the same bytes.
struct Layout {
  std::vector<Interval> intervals;  ///< by first step, values before workspace
  Bytes size = 0;                   ///< bytes of the arena: at least the simulated peak
};

/// Lays out the intervals of a valid schedule, close to its simulated peak. Empty storages get no
/// interval. The search for a smaller arena is short once the arena fits `enough` bytes, and
/// longest where it takes slightly more.
Layout lay_out(const Graph& graph, const Schedule& schedule, Bytes enough = 0);

/// A layout in which independent serial nodes can run concurrently. The memory that a serial node
/// works in, or is the last to read, is not reused by the next eight serial nodes. If that takes
/// too much, four, two or one are tried. Returns nothing when no serial nodes are independent, or
/// when the layout takes more than `enough` bytes or more than twice `packed`, the bytes of another
/// layout.
std::optional<Layout> lay_out_apart(const Graph& graph, const Schedule& schedule, Bytes packed,
                                    Bytes enough);

/// A layout that is found quickly, in a millisecond for some hundreds of intervals, for a search
/// that asks again and again. The search ends once the arena fits `enough` bytes. In that case, the
/// arena of `lay_out` with the same `enough` fits as well.
Layout lay_out_quickly(const Graph& graph, const Schedule& schedule, Bytes enough);

}  // namespace palimpsest
