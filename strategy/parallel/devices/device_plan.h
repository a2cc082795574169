#pragma once

#include <memory>
#include <span>
#include <vector>

#include "strategy/base/report.h"
#include "strategy/parallel/devices/device_tasks.h"
#include "strategy/parallel/partition/piece_programs.h"

namespace palimpsest {

/// A piece, the program that runs it, and where its device stores its arguments and results.
struct DevicePiece {
  static constexpr Bytes nowhere = -1;  ///< for a result that the caller receives

  Piece piece;
  BufferProgramPtr program;  ///< null where nothing of the piece is needed
  Workspace workspace;
  std::vector<Bytes> arguments;
  std::vector<Bytes> results;
};

/// How a program runs on devices.
struct DevicePlan {
  std::vector<DevicePiece> pieces;
  DeviceTasks tasks;
  std::vector<Bytes> blocks;  ///< by device: bytes of its memory
  std::vector<Report::Device> devices;
  Bytes predicted_peak = 0;  ///< of all devices together, without sums of micro-batches
  Bytes keep_all_peak = 0;   ///< likewise, for a plan that recomputes nothing
  Bytes budget = unlimited;  ///< for all devices
  /// Of the longest chain of tasks, or of all work divided evenly if that takes longer.
  double seconds = 0;
  double work_seconds = 0;  ///< of all pieces on one thread
  double keep_all_work_seconds = 0;
  std::uint32_t keep_all_computed = 0;  ///< nodes run by a plan that recomputes nothing
};

/// The input of `plan_devices`.
struct DeviceRequest {
  const RecordedProgram& program;
  std::span<const Device> devices;
  GradientMode gradient;
  PieceOptions pieces;  ///< the budget is for all devices
  bool sums_gradients;  ///< micro-batches are summed, in memory outside of the plan
  Bytes kept;           ///< bytes kept from earlier runs for reuse
  int threads;          ///< for all devices
};

/// Places a program, and plans what each device keeps. A device keeps everything that its adjoints
/// read, or only its inputs from other devices, from which it computes its forward part again. It
/// recomputes where the mode asks for it, or where keeping everything takes longer. Pieces run in
/// the rest of the device's budget.
///
/// It considers the placements that fit and take at most 5 % longer than the fastest. Among these
/// it chooses the one whose fullest device has the most room.
///
/// Throws `BudgetError` naming a device and the smallest budget for it, or the smallest budget for
/// all; `ArgumentError` as `possible_placements`, and for a loop where nothing may be recomputed.
DevicePlan plan_devices(const DeviceRequest& request, PiecePrograms& programs);

}  // namespace palimpsest
