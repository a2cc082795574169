#pragma once

#include <algorithm>

#include "strategy/evaluators/engine.h"

namespace palimpsest {

/// An engine that computes nothing, for evaluators that compute while a tape is recorded: it makes
/// zeros present in place of what they ask for, counted at its meter as what would be there, and
/// adds up what computing it would take. For tapes of which nobody else holds a value, in memory
/// that keeps no results.
class DryEngine final : public Engine {
 public:
  explicit DryEngine(Rates rates) : rates_(std::move(rates)) {}

  using Engine::evaluate;
  Report evaluate(Tape& tape, std::span<const ValueId> targets, NodeId backward_begins,
                  const RunOptions& options) override;
  void compute_now(Tape& tape, NodeId node, const RunOptions& options) override;

  /// The most bytes there would have been at once.
  Bytes peak() const { return std::max(peak_, meter().peak()); }
  double seconds() const { return seconds_; }  ///< by the rates given
  double cost() const { return cost_; }        ///< seconds on one thread, as planners have it

 private:
  Rates rates_;
  Bytes peak_ = 0;
  double seconds_ = 0;
  double cost_ = 0;
};

}  // namespace palimpsest
