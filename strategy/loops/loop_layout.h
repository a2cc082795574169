#pragma once

#include "checkpoint/chains/two_tier.h"
#include "strategy/loops/loop.h"

namespace palimpsest {

/// How the memory that a loop holds states in is divided: a header, two blocks where states on
/// their way to the disk and from it lie, slots, and the last state that a step reads.
struct LoopLayout {
  /// For so many bytes; more than none.
  LoopLayout(Bytes bytes, const Loop& loop);

  bool disk;  ///< states beyond the slots are on disk
  bool has_header;
  std::uint32_t snapshots;  ///< states beside the first of the chain, or of a piece from disk
  Bytes blocks;             ///< where each part begins behind the header
  Bytes slots;
  Bytes last;
};

/// Bytes in which so many states can be held beside the first, and one more, the last that a step
/// reads.
Bytes snapshot_bytes(std::uint32_t snapshots, const Loop& loop);
/// How many can be in so many bytes; without any, none.
std::uint32_t snapshots_in(Bytes bytes, const Loop& loop);

/// What carrying out all that the derivative of a loop of known length needs takes, its forward
/// part included, when so many states are held beside the first.
struct LoopWork {
  std::uint64_t forward_steps = 0;
  std::uint64_t writes = 0;
  std::uint64_t reads = 0;
  double disk_steps = 0;  ///< forward steps that could be run while states are written and read
};
LoopWork work_of(const Loop& loop, std::uint32_t snapshots);

}  // namespace palimpsest
