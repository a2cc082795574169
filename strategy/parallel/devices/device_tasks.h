#pragma once

#include <span>
#include <vector>

#include "strategy/parallel/devices/device_memory.h"
#include "strategy/parallel/partition/task_run.h"

namespace palimpsest {

/// A unit of work on devices: it runs a piece, or transfers the results of a piece to another
/// device.
struct DeviceTask {
  int device = 0;        ///< runs the piece, or receives the transfer
  PieceId piece = none;  ///< the piece to run; `none` for a transfer
  int sender = 0;        ///< the sending device of a transfer
  struct Move {
    ValueId value;  ///< of the program
    Bytes bytes;
    Bytes from;  ///< offset in the sender's memory
    Bytes to;
  };
  std::vector<Move> moves = {};

  Bytes bytes() const;
};

/// The memory a piece runs in, apart from values that are stored there for longer.
struct Workspace {
  Bytes begin = 0;
  Bytes bytes = 0;
};

/// All tasks, in a topological order, and their dependencies. A task waits for those that make its
/// inputs, and for earlier pieces of its device. A task that overwrites memory waits for all tasks
/// that wrote or read its previous content.
struct DeviceTasks {
  std::vector<DeviceTask> tasks;
  TaskEdges edges{0};
};

/// Makes the tasks. `memories` are by device, `workspaces` by piece.
DeviceTasks tasks_of(const RecordedProgram& program, const DeviceCut& cut,
                     std::span<const Piece> pieces, std::span<const DeviceMemory> memories,
                     std::span<const Workspace> workspaces);

}  // namespace palimpsest
