#include "strategy/loops/loop_layout.h"

#include <algorithm>

#include "autodiff/execute.h"

namespace palimpsest {
namespace {

bool needs_header(const Loop& loop) {
  return loop.disk() != nullptr || loop.options().check || loop.resume() != nullptr;
}

/// Bytes outside of the slots.
Bytes fixed_bytes(const Loop& loop) {
  return (needs_header(loop) ? aligned(sizeof(std::uint64_t)) : 0) + loop.state().bytes;
}

LoopWork work_in_memory(const Loop& loop, std::uint32_t snapshots) {
  return {static_cast<double>(binomial_forward_steps(loop.likely_steps(), snapshots + 1))};
}

Bytes slots_in(Bytes bytes, const Loop& loop) {
  constexpr Bytes line = buffer_alignment;
  return bytes / line * line / loop.codec().block().stride;
}

/// Slots that remain when states are also held on disk; −1 where the memory is too small for that.
Bytes slots_with_disk(Bytes bytes, const Loop& loop) {
  const Bytes block = loop.codec().block().bytes;
  const Bytes left = bytes - fixed_bytes(loop) - 2 * block - aligned(loop.disk()->memory_bytes());
  return left < 0 ? -1 : slots_in(left, loop);
}

/// True when fewer slots and a disk are cheaper than as many slots as fit.
bool uses_disk(Bytes bytes, const Loop& loop) {
  if (loop.disk() == nullptr) return false;
  const std::uint32_t snapshots = snapshots_in(bytes, loop);
  const bool all = !loop.has_condition() && snapshots >= loop.snapshots();
  const Bytes slots = all ? -1 : slots_with_disk(bytes, loop);
  if (slots < 0) return false;
  if (loop.has_condition()) return true;
  const LoopWork work = loop.disk()->work(loop.steps(), static_cast<std::uint32_t>(slots) + 1);
  return work.steps() < work_in_memory(loop, snapshots).steps();
}

}  // namespace

Bytes bytes_in_row(std::uint32_t blocks, const StateBlock& block) {
  return aligned(Bytes{blocks} * block.stride);
}

Bytes snapshot_bytes(std::uint32_t snapshots, const Loop& loop) {
  return fixed_bytes(loop) + bytes_in_row(snapshots, loop.codec().block());
}

std::uint32_t most_snapshots(const Loop& loop) {
  constexpr std::uint32_t unknown = 1 << 20;
  return loop.has_condition() ? unknown : loop.snapshots();
}

std::uint32_t snapshots_in(Bytes bytes, const Loop& loop) {
  if (loop.state().bytes == 0) return loop.snapshots();
  if (bytes == 0) return 0;
  const Bytes slots = slots_in(bytes - fixed_bytes(loop), loop);
  return static_cast<std::uint32_t>(std::min(slots, Bytes{most_snapshots(loop)}));
}

LoopLayout::LoopLayout(Bytes bytes, const Loop& loop)
    : disk(uses_disk(bytes, loop)),
      has_header(needs_header(loop)),
      snapshots(disk ? static_cast<std::uint32_t>(slots_with_disk(bytes, loop))
                     : snapshots_in(bytes, loop)),
      blocks(has_header ? aligned(sizeof(std::uint64_t)) : 0),
      slots(blocks + (disk ? 2 * loop.codec().block().bytes : 0)),
      last(slots + bytes_in_row(snapshots, loop.codec().block())) {}

LoopWork work_of(const Loop& loop, Bytes bytes) {
  if (loop.likely_steps() == 0) return {};
  const LoopLayout layout(bytes, loop);
  if (!layout.disk) return work_in_memory(loop, layout.snapshots);
  return loop.disk()->work(loop.likely_steps(), layout.snapshots + 1);
}

}  // namespace palimpsest
