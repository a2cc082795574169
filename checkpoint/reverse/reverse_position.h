#pragma once

#include <cstdint>

namespace palimpsest {

/// How far a run of a `ReverseDriver` is.
struct JournalPosition {
  enum class Phase : std::uint64_t { sweep, reversal, finished };
  Phase phase = Phase::sweep;
  std::uint64_t current = 0;       ///< number of the current state, or `none`
  std::uint64_t left = 0;          ///< steps to be reversed, once their number is known
  std::uint64_t length = 0;        ///< of the chain; 0 while unknown
  std::uint64_t actions = 0;       ///< of the schedule that are done: of the sweep, or of the rest
  std::uint64_t advanced = 0;      ///< calls of `advance`, by all processes
  std::uint64_t furthest = 0;      ///< the last state that was made
  std::uint64_t largest_kept = 0;  ///< bytes; only by bytes
  std::uint64_t repetitions = 0;   ///< likewise: how often a step is run, at most
  std::uint64_t piece = 0;         ///< likewise: the last state that was written to disk
  std::uint64_t snapshots = 0;     ///< of the plan, which the rest of the run must follow
  std::uint64_t segment = 0;       ///< likewise
  std::int64_t slot_bytes = 0;     ///< likewise
  double write_cost = 0;           ///< of the disk, in steps
  double read_cost = 0;
  double planned_write_cost = -1;  ///< of the plan, which the rest of the run must follow; negative
                                   ///< without a disk

  static constexpr std::uint64_t none = ~std::uint64_t{0};
};

}  // namespace palimpsest
