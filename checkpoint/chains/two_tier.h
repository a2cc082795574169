#pragma once

#include <optional>
#include <vector>

#include "checkpoint/chains/binomial.h"
#include "checkpoint/chains/disk_costs.h"

namespace palimpsest {

/// The cheapest schedule for a chain of equal steps when `snapshots` states can be held in memory
/// for free, state 0 counted among them, and any number on disk at a cost (disk-revolve: Aupy,
/// Herrmann, Hovland and Robert, 2016).
///
/// The first sweep cuts the chain into pieces and writes the first state of each but the last. A
/// piece is reversed from its state on disk, read one or several times; what a read serves is
/// reversed in memory, binomially. Planning takes O(n log n + nk) and 48 bytes a step, with k the
/// number of lengths that pieces can have, all but one of them: the convex corners of the cost of a
/// piece, few unless there are few snapshots and the disk is very slow. An action takes O(1).
///
/// Of a chain longer than four times the snapshots and four times `best_period`, but of 2^16 steps
/// at least and 2^18 at most, only so many steps are planned like that. The pieces before these
/// have the length among shorter ones that costs least a step, as almost all have in the cheapest
/// schedule of a long chain (Aupy and Herrmann, 2017).
class TwoTierSchedule {
 public:
  /// Throws `ArgumentError` for no snapshots and for costs that are negative or not finite.
  TwoTierSchedule(std::uint32_t steps, std::uint32_t snapshots, DiskCosts costs);

  std::uint64_t forward_steps() const { return forward_steps_; }
  std::uint64_t writes() const { return writes_; }
  std::uint64_t reads() const { return reads_; }

  /// The next action; nothing when every step is reversed.
  std::optional<ChainAction> next();
  /// The next restore from disk, known once the first sweep has written all; nothing after the
  /// last.
  std::optional<ChainAction> next_read() const;

 private:
  /// Steps [first, last), their first state on disk in the slot of the piece's place.
  struct Piece {
    std::uint32_t first;
    std::uint32_t last;
  };

  std::uint32_t steps_;
  std::uint32_t snapshots_;
  std::vector<Piece> pieces_;            // those that are not reversed yet
  std::uint32_t written_ = 0;            // of them, in the first sweep
  std::vector<std::uint32_t> advances_;  // by length of a piece, steps to run after reading it
  BinomialSchedule in_memory_;           // what is being reversed there
  std::optional<ChainAction> then_;      // what follows the action given last
  std::uint64_t forward_steps_ = 0;
  std::uint64_t writes_ = 0;
  std::uint64_t reads_ = 0;
};

}  // namespace palimpsest
