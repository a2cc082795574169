#pragma once

#include "strategy/loops/loop.h"

namespace palimpsest {

/// How the memory that a loop holds states in is divided: a header where something is handed over
/// beside the states, slots, and the last state that a step reads. Where it is cheaper to hold some
/// states on disk and fewer in memory, two blocks before the slots, for states on their way, and
/// what the file takes of memory behind the last state.
struct LoopLayout {
  /// For so many bytes, as `snapshot_bytes` gives; none only where a state takes none.
  LoopLayout(Bytes bytes, const Loop& loop);

  bool disk = false;
  bool has_header;
  std::uint32_t snapshots;  ///< states beside the first of the chain, or of a piece from disk
  Bytes blocks;             ///< where each part begins
  Bytes slots;
  Bytes last;
};

/// Bytes in which so many states can be held beside the first, and one more, the last that a step
/// reads.
Bytes snapshot_bytes(std::uint32_t snapshots, const Loop& loop);
/// How many can be in so many bytes, nothing on disk: none in none, unless a state takes none.
std::uint32_t snapshots_in(Bytes bytes, const Loop& loop);

/// What the derivative of a loop takes, its forward part included, when states are held in so many
/// bytes. Of a loop whose length is not known, for one it may have.
LoopWork work_of(const Loop& loop, Bytes bytes);

}  // namespace palimpsest
