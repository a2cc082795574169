#include "strategy/loops/loop_layout.h"

#include <algorithm>

#include "autodiff/execute.h"

namespace palimpsest {
namespace {

bool needs_header(const HeldComponents& held) {
  const Loop& loop = held.loop();
  const bool is_checked = loop.options().check && !held.are_none();
  return held.disk() != nullptr || is_checked || loop.resume() != nullptr;
}

/// Bytes outside of the slots.
Bytes fixed_bytes(const HeldComponents& held) {
  return (needs_header(held) ? aligned(sizeof(std::uint64_t)) : 0) + held.block().bytes;
}

LoopWork work_in_memory(const Loop& loop, std::uint32_t snapshots) {
  return {static_cast<double>(binomial_forward_steps(loop.likely_steps(), snapshots + 1))};
}

Bytes slots_in(Bytes bytes, const HeldComponents& held) {
  constexpr Bytes line = buffer_alignment;
  return bytes / line * line / held.codec().block().stride;
}

/// Slots that remain when states are also held on disk; −1 where the memory is too small for that.
Bytes slots_with_disk(Bytes bytes, const HeldComponents& held) {
  const Bytes block = held.codec().block().bytes;
  const Bytes left = bytes - fixed_bytes(held) - 2 * block - aligned(held.disk()->memory_bytes());
  return left < 0 ? -1 : slots_in(left, held);
}

/// True when fewer slots and a disk are cheaper than as many slots as fit.
bool uses_disk(Bytes bytes, const HeldComponents& held) {
  if (held.disk() == nullptr) return false;
  const Loop& loop = held.loop();
  const std::uint32_t snapshots = snapshots_in(bytes, held);
  const bool all = !loop.has_condition() && snapshots >= loop.snapshots();
  const Bytes slots = all ? -1 : slots_with_disk(bytes, held);
  if (slots < 0) return false;
  if (loop.has_condition()) return true;
  const LoopWork work = held.disk()->work(loop.steps(), static_cast<std::uint32_t>(slots) + 1);
  return work.steps() < work_in_memory(loop, snapshots).steps();
}

}  // namespace

Bytes bytes_in_row(std::uint32_t blocks, const StateBlock& block) {
  return aligned(Bytes{blocks} * block.stride);
}

Bytes snapshot_bytes(std::uint32_t snapshots, const HeldComponents& held) {
  return fixed_bytes(held) + bytes_in_row(snapshots, held.codec().block());
}

std::uint32_t most_snapshots(const Loop& loop) {
  constexpr std::uint32_t unknown = 1 << 20;
  return loop.has_condition() ? unknown : loop.snapshots();
}

std::uint32_t snapshots_in(Bytes bytes, const HeldComponents& held) {
  if (held.block().bytes == 0) return held.loop().snapshots();
  if (bytes == 0) return 0;
  const Bytes slots = slots_in(bytes - fixed_bytes(held), held);
  return static_cast<std::uint32_t>(std::min(slots, Bytes{most_snapshots(held.loop())}));
}

LoopLayout::LoopLayout(Bytes bytes, const HeldComponents& held)
    : disk(uses_disk(bytes, held)),
      has_header(needs_header(held)),
      snapshots(disk ? static_cast<std::uint32_t>(slots_with_disk(bytes, held))
                     : snapshots_in(bytes, held)),
      blocks(has_header ? aligned(sizeof(std::uint64_t)) : 0),
      slots(blocks + (disk ? 2 * held.codec().block().bytes : 0)),
      last(slots + bytes_in_row(snapshots, held.codec().block())) {}

LoopWork work_of(const HeldComponents& held, Bytes bytes) {
  const Loop& loop = held.loop();
  if (loop.likely_steps() == 0) return {};
  const LoopLayout layout(bytes, held);
  if (!layout.disk) return work_in_memory(loop, layout.snapshots);
  return held.disk()->work(loop.likely_steps(), layout.snapshots + 1);
}

}  // namespace palimpsest
