#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "checkpoint/chains/two_tier.h"
#include "strategy/loops/scan.h"

namespace palimpsest {

/// What the derivative of a loop takes, its forward part included.
struct LoopWork {
  double forward_steps = 0;
  double disk_steps = 0;  ///< steps that could be run forward while states are written and read
  std::uint64_t writes = 0;
  std::uint64_t reads = 0;

  double steps() const { return forward_steps + disk_steps; }
};

/// The disk tier of a loop: what using it takes, and the schedules that follow from that.
class LoopDisk {
 public:
  /// For some `states` states that are records like that, in `options.spill`. `step_seconds` says
  /// what a step forward takes.
  LoopDisk(const LoopOptions& options, std::vector<RecordPiece> record, std::uint32_t states,
           std::function<double()> step_seconds);

  /// Bytes of memory that a file takes, its table of slots not among them.
  Bytes memory_bytes() const;
  /// What one access takes, in steps. Measures when the options do not say. Throws what `SpillFile`
  /// does.
  DiskCosts costs() const;
  /// How a chain of known length is reversed best, and what that takes.
  TwoTierSchedule schedule(std::uint32_t steps, std::uint32_t snapshots) const;
  LoopWork work(std::uint32_t steps, std::uint32_t snapshots) const;
  std::unique_ptr<SpillFile> open() const;

 private:
  using Chain = std::pair<std::uint32_t, std::uint32_t>;  // steps and snapshots
  const TwoTierSchedule& planned(Chain chain) const;

  std::string directory_;
  SpillOptions options_;
  std::vector<RecordPiece> record_;
  std::uint32_t states_;
  std::function<double()> step_seconds_;
  mutable std::mutex mutex_;  // of the rest
  mutable std::optional<Bytes> memory_bytes_;
  mutable std::optional<DiskCosts> costs_;
  mutable std::map<Chain, LoopWork> works_;
  mutable std::optional<TwoTierSchedule> schedule_;  // the last one made
  mutable Chain schedule_of_{};
};

}  // namespace palimpsest
