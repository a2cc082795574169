#pragma once

#include <memory>
#include <span>
#include <vector>

#include "strategy/base/report.h"
#include "strategy/parallel/devices/device_tasks.h"
#include "strategy/parallel/partition/piece_programs.h"

namespace palimpsest {

/// A piece, how it is run, and where in the memory of its device its arguments and results lie.
struct DevicePiece {
  static constexpr Bytes nowhere = -1;  ///< of a result that goes to whoever runs the program

  Piece piece;
  std::shared_ptr<const StepProgram> program;  ///< null where nothing is wanted of the piece
  Workspace workspace;
  std::vector<Bytes> arguments;
  std::vector<Bytes> results;
};

/// How a program runs on devices.
struct DevicePlan {
  std::vector<DevicePiece> pieces;
  DeviceTasks tasks;
  std::vector<Bytes> blocks;  ///< by device: its memory
  std::vector<Report::Device> devices;
  Bytes predicted_peak = 0;  ///< of all devices together, without sums of micro-batches
  Bytes keep_all_peak = 0;   ///< the same of a plan that computes nothing again
  Bytes budget = unlimited;  ///< of all
  double seconds = 0;        ///< of the longest chain of tasks, or of all work shared evenly
  double work_seconds = 0;   ///< of all pieces on one thread
  double keep_all_work_seconds = 0;
  std::uint32_t keep_all_computed = 0;  ///< nodes that a plan runs that computes nothing again
};

/// What is to be planned.
struct DeviceRequest {
  const RecordedProgram& program;
  std::span<const Device> devices;
  GradientMode gradient;
  PieceOptions pieces;  ///< the budget is of all devices
  bool sums_gradients;  ///< of micro-batches, which lie beside
  Bytes kept;           ///< that runs before left to be used again
  int threads;          ///< of all devices
};

/// Places a program and plans what each device keeps: all that its adjoints read or, where the mode
/// asks for it or that takes longer, what comes from other devices, from which its forward part is
/// computed again; each piece in what the device's budget leaves beside. Of the placements
/// that fit one that takes at most a twentieth longer than the fastest has to, on whose fullest
/// device there is most room.
///
/// Throws `BudgetError` naming a device and the smallest budget for it, or the smallest for all;
/// `ArgumentError` as `possible_placements`, and for a loop where nothing is to be computed again.
DevicePlan plan_devices(const DeviceRequest& request, PiecePrograms& programs);

}  // namespace palimpsest
