#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "checkpoint/chains/two_tier.h"
#include "strategy/loops/scan.h"

namespace palimpsest {

/// The disk tier of a loop: what using it takes, and the schedules that follow from that.
class LoopDisk {
 public:
  /// For some `states` states that are records like that, in `options.spill`. `step_seconds` says
  /// what a step forward takes.
  LoopDisk(const LoopOptions& options, std::vector<RecordPiece> record, std::uint32_t states,
           std::function<double()> step_seconds);

  /// Bytes of memory that a file takes, its table of slots not among them.
  Bytes memory_bytes() const { return memory_bytes_; }
  /// What one access takes, in steps. Measures when the options do not say. Throws what `SpillFile`
  /// does.
  DiskCosts costs() const;
  /// How a chain of known length is reversed best.
  TwoTierSchedule schedule(std::uint32_t steps, std::uint32_t snapshots) const;
  std::unique_ptr<SpillFile> open() const;

 private:
  std::string directory_;
  SpillOptions options_;
  std::vector<RecordPiece> record_;
  std::uint32_t states_;
  std::function<double()> step_seconds_;
  Bytes memory_bytes_;
  mutable std::mutex mutex_;
  mutable std::optional<DiskCosts> costs_;
  mutable std::optional<TwoTierSchedule> schedule_;  // the last one made
  mutable std::pair<std::uint32_t, std::uint32_t> made_for_{};
};

}  // namespace palimpsest
