#pragma once

#include <optional>
#include <vector>

#include "checkpoint/chains/binomial.h"
#include "checkpoint/chains/disk_costs.h"

namespace palimpsest {

/// The cheapest schedule for a chain of equal steps with two tiers (disk-revolve: Aupy, Herrmann,
/// Hovland and Robert, 2016). `snapshots` states, including state 0, can be held in memory for
/// free, and any number on disk at a cost.
///
/// The first sweep cuts the chain into pieces and writes the first state of each piece but the
/// last. A piece is reversed from its state on disk, which is read once or several times. The steps
/// that one read serves are reversed in memory, binomially. Planning takes O(n log n + nk) time and
/// 48 bytes per step. Here, k is the number of lengths that all pieces but one can have: the convex
/// corners of the cost of a piece. They are few unless there are few snapshots and the disk is very
/// slow. An action takes O(1).
///
/// In a long chain only the last part is planned like that. It has four times the snapshots or four
/// times `best_period`, whichever is more, but at least 2^16 and at most 2^18 steps. The pieces
/// before it have the length, among shorter ones, that costs least per step. Almost all pieces have
/// that length in the cheapest schedule of a long chain (Aupy and Herrmann, 2017).
class TwoTierSchedule {
 public:
  /// Throws `ArgumentError` for no snapshots and for costs that are negative or not finite.
  TwoTierSchedule(std::uint32_t steps, std::uint32_t snapshots, DiskCosts costs);

  std::uint64_t forward_steps() const { return forward_steps_; }
  std::uint64_t writes() const { return writes_; }
  std::uint64_t reads() const { return reads_; }

  /// The next action; nothing when every step is reversed.
  std::optional<ChainAction> next();
  /// The next restore from disk, known after the first sweep has written everything. Nothing after
  /// the last.
  std::optional<ChainAction> next_read() const;

 private:
  /// Steps [first, last). Their first state is on disk, in the slot numbered like the piece.
  struct Piece {
    std::uint32_t first;
    std::uint32_t last;
  };

  std::uint32_t steps_;
  std::uint32_t snapshots_;
  std::vector<Piece> pieces_;            // not reversed yet
  std::uint32_t written_ = 0;            // number of them written in the first sweep
  std::vector<std::uint32_t> advances_;  // by length of a piece, steps to run after reading it
  BinomialSchedule in_memory_;           // the steps being reversed in memory
  std::optional<ChainAction> then_;      // the action after the last one returned
  std::uint64_t forward_steps_ = 0;
  std::uint64_t writes_ = 0;
  std::uint64_t reads_ = 0;
};

}  // namespace palimpsest
