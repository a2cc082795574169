#pragma once

#include "strategy/loops/loop.h"

namespace palimpsest {

/// How the memory for held states is divided: an optional header for a handover, slots, and the
/// last state that a step reads. If it is cheaper to hold some states on disk and fewer in memory,
/// there are also two blocks before the slots, for transfers. The memory of the file then follows
/// the last state.
struct LoopLayout {
  /// For `bytes` bytes, as `snapshot_bytes` computes them; 0 only if a state has no bytes.
  LoopLayout(Bytes bytes, const HeldComponents& held);

  bool disk = false;
  bool has_header;
  /// States held, in addition to the first of the chain, or of a piece from disk.
  std::uint32_t snapshots;
  /// Offsets of the blocks, of the slots and of the last state.
  Bytes blocks;
  Bytes slots;
  Bytes last;
};

/// Bytes of so many blocks in a row, in whole cache lines.
Bytes bytes_in_row(std::uint32_t blocks, const StateBlock& block);
/// Bytes to hold so many states in addition to the first, plus the last state that a step reads.
Bytes snapshot_bytes(std::uint32_t snapshots, const HeldComponents& held);
/// More states are useless or, for a loop of unknown length, of little use.
std::uint32_t most_snapshots(const Loop& loop);
/// The number of states that fit without a disk, at most `most_snapshots`. 0 for no bytes, unless a
/// state has no bytes.
std::uint32_t snapshots_in(Bytes bytes, const HeldComponents& held);

/// The cost of a loop's derivative, including its forward part, when `bytes` bytes hold states. If
/// the length is not known, an assumed length is used.
LoopWork work_of(const HeldComponents& held, Bytes bytes);

}  // namespace palimpsest
