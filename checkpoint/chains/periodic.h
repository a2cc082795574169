#pragma once

#include <optional>
#include <span>

#include "checkpoint/chains/disk_costs.h"
#include "checkpoint/chains/online.h"

namespace palimpsest {

/// The best number of steps between states written to disk in a chain without end, by cost per
/// step. Each state is read once, and the steps after it are reversed in memory with `snapshots`,
/// binomially (Aupy and Herrmann, 2017). Throws `ArgumentError` for no snapshots and invalid costs.
std::uint32_t best_period(std::uint32_t snapshots, DiskCosts costs);

/// Chooses the states to hold of a chain whose length is unknown until it ends, with `snapshots`
/// states in memory at a time and any number on disk. Every `best_period` steps the current state
/// is written to disk, and `OnlineSnapshots` chooses among the states after it. The first piece has
/// at least `snapshots` steps, as many as can have all their states in memory.
class PeriodicSnapshots {
 public:
  /// Throws what `best_period` does.
  PeriodicSnapshots(std::uint32_t snapshots, DiskCosts costs);

  /// Call it before running step `steps()` from the current state. Returns the stores to carry out
  /// first, at most one in each tier, the one on disk first. Valid until the next call.
  std::span<const ChainAction> before_step();

  std::uint32_t steps() const { return first_ + piece_.steps(); }
  std::uint32_t period() const { return period_; }

 private:
  friend class PeriodicReversal;

  std::uint32_t period_;
  std::uint32_t first_length_;
  std::uint32_t first_ = 0;   // first state of the current piece
  std::uint32_t number_ = 0;  // number of that piece
  OnlineSnapshots piece_;
  ChainAction stores_[2];
};

/// The reversal of such a chain after it has ended, the last piece first. O(1) per action.
class PeriodicReversal {
 public:
  explicit PeriodicReversal(const PeriodicSnapshots& ended);

  /// Forward steps of the whole reversal, including those with a tape, without the sweep.
  std::uint64_t forward_steps() const { return forward_steps_; }

  /// The next action; nothing when every step is reversed. At the start no state is current.
  std::optional<ChainAction> next();
  /// The next restore from disk; nothing after the last.
  std::optional<ChainAction> next_read() const;

 private:
  std::uint32_t period_;
  std::uint32_t first_length_;
  std::uint32_t snapshots_;
  std::uint32_t first_;   // first state of the current piece
  std::uint32_t number_;  // number of that piece
  OnlineReversal last_;
  std::optional<BinomialSchedule> piece_;  // of all pieces but the last
  std::uint64_t forward_steps_;
};

}  // namespace palimpsest
