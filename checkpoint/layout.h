#pragma once

#include <optional>
#include <vector>

#include "checkpoint/schedule.h"

namespace palimpsest {

/// Bytes a storage of `bytes` takes in a layout.
constexpr Bytes laid_out(Bytes bytes) {
  constexpr Bytes unit = buffer_alignment;
  return (bytes + unit - 1) / unit * unit;
}

/// One stretch of schedule during which a storage, or a step's workspace, occupies memory.
struct Interval {
  static constexpr ValueId workspace = none;

  ValueId storage;      ///< root of the storage, or `workspace`
  std::uint32_t first;  ///< step that makes it; 0 for what is present at the start
  std::uint32_t last;   ///< last step during which it is occupied: the drop, or the last of all
  Bytes bytes;
  Bytes offset = 0;                 ///< from the start of the arena, a multiple of 64
  std::uint32_t takes_over = none;  ///< the interval in whose place it lies from `first` on
};

/// Where in one arena everything lies while a schedule runs. Intervals that overlap in time never
/// overlap in space, so buffers need no allocator and no fragmentation can break the budget. Except
/// that an output that takes over a storage (see `simulate`) lies where that does; from the step
/// that makes it on, the two occupy the same bytes.
struct Layout {
  std::vector<Interval> intervals;  ///< by first step, values before workspace
  Bytes size = 0;                   ///< bytes of the arena: at least the simulated peak
};

/// Lays out the intervals of a valid schedule, close to its simulated peak. Empty storages get no
/// interval. Takes less trouble once the arena takes no more than `enough` bytes, and more where it
/// takes just more.
Layout lay_out(const Graph& graph, const Schedule& schedule, Bytes enough = 0);

/// A layout in which what serial nodes work in, and what they are the last to read, shares no
/// memory with that of the next eight of them, or at least four, two or one, so that those can run
/// at once that do not depend on each other. Nothing where there are none, where that takes more
/// than `enough` bytes, and where it takes more than twice the `packed` bytes of another layout.
std::optional<Layout> lay_out_apart(const Graph& graph, const Schedule& schedule, Bytes packed,
                                    Bytes enough);

/// A layout that takes little trouble, a millisecond for some hundreds of intervals, and none once
/// it takes no more than `enough`: for a search that asks again and again. Where it
/// takes no more than `enough`, neither does that of `lay_out` with the same `enough`.
Layout lay_out_quickly(const Graph& graph, const Schedule& schedule, Bytes enough);

}  // namespace palimpsest
