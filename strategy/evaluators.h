#pragma once

#include "autodiff/evaluator.h"
#include "strategy/engine.h"

namespace palimpsest {

/// An evaluator with an engine: what `backward` runs on. A tape without one is given a lazy one.
class EngineEvaluator : public Evaluator {
 public:
  explicit EngineEvaluator(RunOptions options) : options_(std::move(options)) {}

  void compute(Tape& tape, std::uint32_t value) override;
  /// Makes `values` present in one run. Other values stay present unless a budget forces them out.
  void compute(Tape& tape, std::span<const ValueId> values);
  void on_clear(Tape&) override {}

  Engine& engine() { return engine_; }
  const RunOptions& options() const { return options_; }

 private:
  RunOptions options_;
  Engine engine_;
};

/// Computes nothing until a value or a gradient is asked for, and then plans the whole of it.
/// `options` apply to values asked for one by one; `backward` has its own.
std::shared_ptr<Evaluator> lazy(RunOptions options = {});

/// Computes every value as it is recorded and keeps it until a `backward` with a budget or the tape
/// lets go, so that values can be looked at in a debugger. Only `threads` and `anomaly` of the
/// options apply while recording; throws `ArgumentError` when a budget or a planner is given.
std::shared_ptr<Evaluator> eager(RunOptions options = {});

}  // namespace palimpsest
