#pragma once

#include <map>
#include <span>
#include <vector>

#include "checkpoint/layout.h"
#include "strategy/parallel/devices/device_cut.h"

namespace palimpsest {

/// Time steps. Pieces of level l run at time 2l; their results go to other devices at time 2l + 1.
struct DeviceTime {
  static std::uint32_t of_piece(std::uint32_t level) { return 2 * level; }
  static std::uint32_t of_transfer(std::uint32_t level) { return 2 * level + 1; }
};

/// Where a device stores values that its pieces make for others, and values from other devices,
/// until their last use. Values that are live at the same time do not overlap.
struct DeviceMemory {
  /// Values with equal lifetimes.
  std::vector<Interval> groups;
  struct Place {
    std::size_t group;
    Bytes offset;  ///< from the begin of the memory
  };
  std::map<ValueId, Place> places;  ///< by value of the program

  /// The end of the highest byte occupied at a time.
  Bytes top(std::uint32_t time) const;
};

/// Lays out the memory of one device; `pieces` are those of all devices.
DeviceMemory lay_out_device(const RecordedProgram& program, const DeviceCut& cut,
                            std::span<const Piece> pieces, int device);

}  // namespace palimpsest
