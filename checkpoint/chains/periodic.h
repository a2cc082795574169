#pragma once

#include <optional>
#include <span>

#include "checkpoint/chains/disk_costs.h"
#include "checkpoint/chains/online.h"

namespace palimpsest {

/// How many steps apart states are best written to disk in a chain that has no end, when each is
/// read once and what follows it is reversed in memory with `snapshots`, binomially: the length
/// that costs least a step (Aupy and Herrmann, 2017). Throws `ArgumentError` for no snapshots and
/// invalid costs.
std::uint32_t best_period(std::uint32_t snapshots, DiskCosts costs);

/// Chooses what to hold of a chain that runs until it ends, nobody knows when, with `snapshots`
/// states in memory at a time and any number on disk: every `best_period` steps the state at hand
/// is written, and what comes behind it is held in memory as `OnlineSnapshots` chooses. The first
/// piece is at least as long as it can be with all its states in memory.
class PeriodicSnapshots {
 public:
  /// Throws what `best_period` does.
  PeriodicSnapshots(std::uint32_t snapshots, DiskCosts costs);

  /// Step `steps()` is about to be run from the state at hand. Gives the stores to carry out
  /// before, at most one in each tier, that on disk first; valid until the next call.
  std::span<const ChainAction> before_step();

  std::uint32_t steps() const { return first_ + piece_.steps(); }
  std::uint32_t period() const { return period_; }

 private:
  friend class PeriodicReversal;

  std::uint32_t period_;
  std::uint32_t first_length_;
  std::uint32_t first_ = 0;   // state of the piece at hand
  std::uint32_t number_ = 0;  // of that piece
  OnlineSnapshots piece_;
  ChainAction stores_[2];
};

/// The reversal of such a chain once it has ended, the last piece first. An action takes O(1).
class PeriodicReversal {
 public:
  explicit PeriodicReversal(const PeriodicSnapshots& ended);

  /// Forward steps of the whole reversal, those with a tape among them and the sweep not.
  std::uint64_t forward_steps() const { return forward_steps_; }

  /// The next action, at the start with no state at hand; nothing when every step is reversed.
  std::optional<ChainAction> next();
  /// The next restore from disk; nothing after the last.
  std::optional<ChainAction> next_read() const;

 private:
  std::uint32_t period_;
  std::uint32_t first_length_;
  std::uint32_t snapshots_;
  std::uint32_t first_;   // state of the piece at hand
  std::uint32_t number_;  // of that piece
  OnlineReversal last_;
  std::optional<BinomialSchedule> piece_;  // of all pieces but the last
  std::uint64_t forward_steps_;
};

}  // namespace palimpsest
