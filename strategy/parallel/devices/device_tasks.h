#pragma once

#include <span>
#include <vector>

#include "strategy/parallel/devices/device_memory.h"
#include "strategy/parallel/partition/task_run.h"

namespace palimpsest {

/// What is done with a program on its devices: a piece is run, or what a piece made is brought to
/// another device.
struct DeviceTask {
  int device = 0;        ///< that a piece runs on, or that a transfer brings to
  PieceId piece = none;  ///< that is run; `none` for a transfer
  int sender = 0;        ///< of a transfer, a device
  struct Move {
    ValueId value;  ///< of the program
    Bytes bytes;
    Bytes from;  ///< in the memory of the sender
    Bytes to;
  };
  std::vector<Move> moves = {};

  Bytes bytes() const;
};

/// The memory that a piece works in, beside what lies there for longer.
struct Workspace {
  Bytes begin = 0;
  Bytes bytes = 0;
};

/// All tasks, in an order in which none waits for one behind it, and what they wait for: for what
/// they read; pieces of a device for each other; and whoever writes where something else lay for
/// all that wrote and read that.
struct DeviceTasks {
  std::vector<DeviceTask> tasks;
  TaskEdges edges{0};
};

/// `memories` by device, `workspaces` by piece.
DeviceTasks tasks_of(const RecordedProgram& program, const DeviceCut& cut,
                     std::span<const Piece> pieces, std::span<const DeviceMemory> memories,
                     std::span<const Workspace> workspaces);

}  // namespace palimpsest
