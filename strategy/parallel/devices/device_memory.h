#pragma once

#include <map>
#include <span>
#include <vector>

#include "checkpoint/layout.h"
#include "strategy/parallel/devices/device_cut.h"

namespace palimpsest {

/// When something happens: pieces of a level at its even time, and what they make goes to other
/// devices at the odd one behind.
struct DeviceTime {
  static std::uint32_t of_piece(std::uint32_t level) { return 2 * level; }
  static std::uint32_t of_transfer(std::uint32_t level) { return 2 * level + 1; }
};

/// Where in the memory of a device lies what its pieces make for others, and what comes from other
/// devices, until it is read for the last time. What is there at the same time lies apart.
struct DeviceMemory {
  /// Values that are there for the same times.
  std::vector<Interval> groups;
  struct Place {
    std::size_t group;
    Bytes offset;  ///< from the begin of the memory
  };
  std::map<ValueId, Place> places;  ///< by value of the program

  /// The end of what lies highest at a time.
  Bytes top(std::uint32_t time) const;
};

/// `pieces` are those of all devices.
DeviceMemory lay_out_device(const RecordedProgram& program, const DeviceCut& cut,
                            std::span<const Piece> pieces, int device);

}  // namespace palimpsest
