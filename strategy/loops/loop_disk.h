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

/// The cost of a loop's derivative, including its forward part.
struct LoopWork {
  double forward_steps = 0;
  double disk_steps = 0;  ///< cost of writing and reading states, in forward steps
  std::uint64_t writes = 0;
  std::uint64_t reads = 0;

  double steps() const { return forward_steps + disk_steps; }
};

/// The disk tier of a loop: its costs, and the resulting schedules.
class LoopDisk {
 public:
  /// For about `states` states, stored in `options.spill` as records of the given form.
  /// `step_seconds` returns the seconds of a forward step.
  LoopDisk(const LoopOptions& options, std::vector<RecordPiece> record, std::uint32_t states,
           std::function<double()> step_seconds);

  /// Bytes of memory for a file, without its table of slots.
  Bytes memory_bytes() const;
  /// The cost of one access, in steps. Measured when the options do not give it. Throws as
  /// `SpillFile`.
  DiskCosts costs() const;
  /// Likewise, if that was asked for before.
  std::optional<DiskCosts> known_costs() const;
  /// The best schedule for reversing a chain of known length, and its cost.
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
  mutable std::mutex mutex_;  // protects the members below
  mutable std::optional<Bytes> memory_bytes_;
  mutable std::optional<DiskCosts> costs_;
  mutable std::map<Chain, LoopWork> works_;
  mutable std::optional<TwoTierSchedule> schedule_;  // the one made last
  mutable Chain schedule_of_{};
};

}  // namespace palimpsest
