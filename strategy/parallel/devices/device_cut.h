#pragma once

#include <cstdint>
#include <vector>

#include "strategy/parallel/devices/device_placement.h"
#include "strategy/parallel/partition/piece.h"

namespace palimpsest {

/// When values are sent to other devices.
enum class Sending : std::uint8_t {
  late,   ///< after all nodes of the level: fewer pieces
  early,  ///< before nodes that no other device waits for, which become a piece of their own
};

/// A placed program cut into pieces. A piece holds the nodes of one device and one level, where the
/// level counts how often they wait for other devices. Pieces of one level do not wait for each
/// other; values go to other devices between levels.
struct DeviceCut {
  struct At {
    int device = 0;
    std::uint32_t level = 0;
  };
  std::vector<At> pieces;         ///< level by level, at least one
  std::vector<PieceId> piece_of;  ///< by node; `none` for a node that is free or not needed
  /// By device: whether adjoints read states of a loop that another piece runs.
  std::vector<bool> has_loop;
};

/// Cuts a placed program. A node's level is at least that of its inputs from its own device, and at
/// least one more than that of its inputs from other devices. An adjoint that is not sent to other
/// devices moves to the level of its first reader, if fewer bytes are then held. With
/// `Sending::early`, nodes that no other device waits for get a level of their own after the
/// others. Loops whose states are read are an exception.
DeviceCut cut_for_devices(const RecordedProgram& program, const Elements& elements,
                          const DevicePlacement& placement, std::size_t devices, Sending sending);

/// The pieces, in order. For a device that computes again, pieces with adjoints also contain the
/// forward nodes that they need from earlier pieces of the device. They read the inputs that those
/// nodes take from other devices.
std::vector<Piece> pieces_of(const RecordedProgram& program, const DeviceCut& cut,
                             const std::vector<bool>& computes_again);

}  // namespace palimpsest
