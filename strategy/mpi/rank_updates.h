#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "autodiff/tape.h"
#include "strategy/base/updates.h"
#include "strategy/mpi/rank_link.h"

namespace palimpsest {

/// The values of updates (`Tape::update_after_run`) in the micro-batches of this rank, and their
/// means over the examples of all ranks. They are added in f64, in the order of the ranks. With one
/// micro-batch per rank the means have the bits of one process with as many shards.
class RankUpdates {
 public:
  /// Begins a step with the updates that the first micro-batch has recorded on `tape`. Allocates
  /// what the exchange needs.
  void begin(const Tape& tape, std::span<const Tape::Update> updates);
  std::span<const Tape::Update> updates() const { return updates_; }

  /// Adds the values of a micro-batch.
  void add(std::span<const Tensor> values, std::int64_t examples);
  /// Adds up over ranks. All ranks call it, even those that failed. Allocates nothing.
  void exchange(RankLink& link);
  /// After `exchange`: the contents that the targets get. `examples` are those of all ranks.
  StagedUpdates staged(std::int64_t examples) const;

 private:
  std::vector<Tape::Update> updates_;
  std::vector<ValueType> types_;   // of the values
  std::vector<double> own_;        // sums over the examples of this rank, update after update
  std::vector<double> all_;        // of all ranks
  std::vector<double> of_a_rank_;  // received
};

}  // namespace palimpsest
