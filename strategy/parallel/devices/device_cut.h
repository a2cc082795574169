#pragma once

#include <cstdint>
#include <vector>

#include "strategy/parallel/devices/device_placement.h"
#include "strategy/parallel/partition/piece.h"

namespace palimpsest {

/// When values go to other devices.
enum class Sending : std::uint8_t {
  late,   ///< with all that waited for other devices as often, in few pieces
  early,  ///< before what no other device waits for: that is a piece of its own
};

/// A placed program in pieces: nodes of one device that wait for other devices equally often. So
/// pieces of one level do not wait for each other, and between levels values go to other devices.
struct DeviceCut {
  struct At {
    int device = 0;
    std::uint32_t level = 0;
  };
  std::vector<At> pieces;         ///< level by level, at least one
  std::vector<PieceId> piece_of;  ///< by node; `none` where it is free or not needed
  /// By device: adjoints read states of a loop that another piece runs.
  std::vector<bool> has_loop;
};

/// Cuts a placed program. A node's level is one more than that of what it reads from another device
/// and no less than that of what it reads from its own. An adjoint that nothing else keeps from it,
/// and that then holds fewer bytes, moves to the level of what reads it. Where values are sent
/// early, what no other device waits for has a level behind, but for loops whose states are read.
DeviceCut cut_for_devices(const RecordedProgram& program, const Elements& elements,
                          const DevicePlacement& placement, std::size_t devices, Sending sending);

/// The pieces, in order. Of the devices that compute again, pieces with adjoints hold the forward
/// nodes that they need of earlier pieces of the device too, and read what those take from other
/// devices.
std::vector<Piece> pieces_of(const RecordedProgram& program, const DeviceCut& cut,
                             const std::vector<bool>& computes_again);

}  // namespace palimpsest
