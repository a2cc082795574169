#include "strategy/parallel/devices/device_memory.h"

#include <algorithm>

#include "checkpoint/placement.h"

namespace palimpsest {

Bytes DeviceMemory::top(std::uint32_t time) const {
  Bytes end = 0;
  for (const Interval& group : groups) {
    if (group.first <= time && time <= group.last) end = std::max(end, group.offset + group.bytes);
  }
  return end;
}

DeviceMemory lay_out_device(const RecordedProgram& program, const DeviceCut& cut,
                            std::span<const Piece> pieces, int device) {
  using Times = std::pair<std::uint32_t, std::uint32_t>;
  std::map<ValueId, Times> times;
  for (PieceId reader = 0; reader < pieces.size(); ++reader) {
    const DeviceCut::At& to = cut.pieces[reader];
    for (const ValueId value : pieces[reader].arguments) {
      const DeviceCut::At& from = cut.pieces[cut.piece_of[program.tape.producer(value)]];
      if (from.device != device && to.device != device) continue;
      const std::uint32_t made = from.device == device ? DeviceTime::of_piece(from.level)
                                                       : DeviceTime::of_transfer(from.level);
      const std::uint32_t read = to.device == device ? DeviceTime::of_piece(to.level)
                                                     : DeviceTime::of_transfer(from.level);
      const auto found = times.try_emplace(value, made, read).first;
      found->second.second = std::max(found->second.second, read);
    }
  }
  std::map<Times, std::vector<ValueId>> by_times;
  for (const auto& [value, when] : times) by_times[when].push_back(value);
  DeviceMemory memory;
  for (const auto& [when, values] : by_times) {
    Interval group{none, when.first, when.second, 0};
    for (const ValueId value : values) {
      memory.places[value] = {memory.groups.size(), group.bytes};
      group.bytes += laid_out(program.tape.bytes(value));
    }
    memory.groups.push_back(group);
  }
  std::vector<Interval> with_bytes;
  for (Interval& group : memory.groups) {
    group.storage = static_cast<ValueId>(with_bytes.size());
    if (group.bytes > 0) with_bytes.push_back(group);
  }
  place(with_bytes, {.quick = true});
  for (Interval& group : memory.groups) {
    if (group.bytes > 0) group.offset = with_bytes[group.storage].offset;
  }
  for (auto& [value, at] : memory.places) at.offset += memory.groups[at.group].offset;
  return memory;
}

}  // namespace palimpsest
