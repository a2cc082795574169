#pragma once

#include <algorithm>

#include "strategy/evaluators/engine.h"

namespace palimpsest {

/// An engine that computes nothing, for evaluators that compute while a tape is recorded. It makes
/// zeros present in place of the requested values, and its meter counts them as if they were real.
/// It adds up what computing them would take. Requires that the tape is the only holder of its
/// values, and a memory mode that keeps no results between runs.
class DryEngine final : public Engine {
 public:
  explicit DryEngine(Rates rates) : rates_(std::move(rates)) {}

  using Engine::evaluate;
  Report evaluate(Tape& tape, std::span<const ValueId> targets, NodeId backward_begins,
                  const RunOptions& options) override;
  void compute_now(Tape& tape, NodeId node, const RunOptions& options) override;

  /// The most bytes that would have been live at once.
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
