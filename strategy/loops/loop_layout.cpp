#include "strategy/loops/loop_layout.h"

#include <algorithm>
#include <limits>

#include "autodiff/execute.h"

namespace palimpsest {
namespace {

Bytes header_bytes(const Loop& loop, bool disk) {
  return disk || loop.options().check ? aligned(sizeof(std::uint64_t)) : 0;
}

/// What is held beside the slots.
Bytes fixed_bytes(const Loop& loop, bool disk) {
  const Bytes on_the_way =
      disk ? 2 * loop.codec().block().bytes + aligned(loop.disk()->memory_bytes()) : 0;
  return header_bytes(loop, disk) + on_the_way + loop.state().bytes;
}

Bytes bytes_in_memory(std::uint32_t snapshots, const Loop& loop, bool disk) {
  return fixed_bytes(loop, disk) + Bytes{snapshots} * loop.codec().block().bytes;
}

/// Bytes with which every state can be held in memory.
Bytes bytes_for_all(const Loop& loop) { return bytes_in_memory(loop.snapshots(), loop, false); }

bool uses_disk(Bytes bytes, const Loop& loop) {
  return loop.disk() != nullptr && (loop.has_condition() || bytes < bytes_for_all(loop));
}

}  // namespace

Bytes snapshot_bytes(std::uint32_t snapshots, const Loop& loop) {
  if (loop.disk() == nullptr) return bytes_in_memory(snapshots, loop, false);
  const Bytes bytes = bytes_in_memory(snapshots, loop, true);
  return loop.has_condition() ? bytes : std::min(bytes, bytes_for_all(loop));
}

std::uint32_t snapshots_in(Bytes bytes, const Loop& loop) {
  if (loop.state().bytes == 0) return loop.snapshots();
  if (bytes == 0) return 0;
  const Bytes slots = bytes - fixed_bytes(loop, uses_disk(bytes, loop));
  constexpr Bytes most = std::numeric_limits<std::uint32_t>::max() - 1;
  return static_cast<std::uint32_t>(std::min(slots / loop.codec().block().bytes, most));
}

LoopLayout::LoopLayout(Bytes bytes, const Loop& loop)
    : disk(uses_disk(bytes, loop)),
      has_header(header_bytes(loop, disk) > 0),
      snapshots(snapshots_in(bytes, loop)),
      blocks(header_bytes(loop, disk)),
      slots(blocks + (disk ? 2 * loop.codec().block().bytes : 0)),
      last(slots + Bytes{snapshots} * loop.codec().block().bytes) {}

LoopWork work_of(const Loop& loop, std::uint32_t snapshots) {
  const std::uint32_t steps = loop.likely_steps();
  if (steps == 0) return {};
  const Bytes bytes = snapshot_bytes(snapshots, loop);
  if (!uses_disk(bytes, loop)) return {binomial_forward_steps(steps, snapshots + 1)};
  const TwoTierSchedule schedule = loop.disk()->schedule(steps, snapshots + 1);
  const DiskCosts costs = loop.disk()->costs();
  return {schedule.forward_steps(), schedule.writes(), schedule.reads(),
          costs.write * static_cast<double>(schedule.writes()) +
              costs.read * static_cast<double>(schedule.reads())};
}

}  // namespace palimpsest
