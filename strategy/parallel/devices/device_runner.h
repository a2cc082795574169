#pragma once

#include <map>
#include <memory>
#include <vector>

#include "checkpoint/arena.h"
#include "strategy/parallel/devices/device_plan.h"

namespace palimpsest {

/// Where a run's results go.
struct DeviceOutputs {
  std::byte* outcome;
  std::vector<std::byte*> gradients;  ///< by parameter
};

/// Runs programs on devices, pieces of different ones at once, and keeps the memory of the last
/// plan for the next run.
class DeviceRunner {
 public:
  /// A device's work is done by `threads_of_device` threads, all of it by `threads`.
  DeviceRunner(int devices, int threads, int threads_of_device);
  ~DeviceRunner();

  /// Bytes that are kept.
  Bytes kept() const;

  /// Runs what `plan` says with the leaves of a tape whose program was recorded again, `round`
  /// times cleared more often than that of the plan. Reports what was measured and what was done;
  /// the measured peak is of the devices' memory, outputs not among it. Passes on what a piece
  /// throws, with its device for errors of use.
  Report run(const std::shared_ptr<const DevicePlan>& plan, const Tape& tape, std::uint32_t round,
             const DeviceOutputs& outputs);

 private:
  class Run;
  struct Threads;

  void prepare(const std::shared_ptr<const DevicePlan>& plan);

  std::unique_ptr<Threads> threads_;
  std::vector<Meter> meters_;  // by device
  std::vector<Arena> blocks_;  // by device
  std::shared_ptr<const DevicePlan> prepared_;
  std::map<PieceId, StepRunner> runners_;
};

}  // namespace palimpsest
