#pragma once

#include <map>
#include <memory>
#include <vector>

#include "autodiff/export.h"
#include "checkpoint/arena.h"
#include "strategy/parallel/devices/device_plan.h"
#include "strategy/run/buffer_runner.h"

namespace palimpsest PALIMPSEST_EXPORT {  // for palimpsest-mpi

/// Where a run's results are written.
struct DeviceOutputs {
  std::byte* outcome;
  std::vector<std::byte*> gradients;  ///< by parameter
  std::vector<std::byte*> outputs;
};

/// Runs programs on devices, and keeps the memory of the last plan for the next run. Pieces of
/// different devices run in parallel.
class DeviceRunner {
 public:
  /// Each device uses `threads_of_device` threads, all devices together `threads`.
  DeviceRunner(int devices, int threads, int threads_of_device);
  ~DeviceRunner();

  /// Bytes kept for the next run.
  Bytes kept() const;
  /// Returns it to the system.
  void release_memory();

  /// Runs `plan` with the leaves of `tape`, on which the plan's program was recorded again. `round`
  /// is the number of times that this tape was cleared more than the plan's. Returns the report;
  /// the measured peak is that of the devices' memory, without outputs. Passes on exceptions of
  /// pieces; usage errors name the device. `options` stop and watch the run.
  Report run(const std::shared_ptr<const DevicePlan>& plan, const Tape& tape, std::uint32_t round,
             const DeviceOutputs& outputs, const RunOptions& options);

 private:
  class Run;
  struct Threads;

  void prepare(const std::shared_ptr<const DevicePlan>& plan);

  std::unique_ptr<Threads> threads_;
  std::vector<Meter> meters_;  // by device
  std::vector<Arena> blocks_;  // by device
  std::shared_ptr<const DevicePlan> prepared_;
  std::map<PieceId, BufferRunner> runners_;
};

}  // namespace palimpsest
