#pragma once

#include "autodiff/evaluator.h"
#include "strategy/base/stage_limits.h"
#include "strategy/evaluators/engine.h"

namespace palimpsest {

/// An evaluator with an engine: what `backward` runs on. A tape without one is given a lazy one.
class EngineEvaluator : public Evaluator {
 public:
  explicit EngineEvaluator(RunOptions options,
                           std::shared_ptr<Engine> engine = std::make_shared<Engine>())
      : options_(std::move(options)), engine_(std::move(engine)) {}

  void compute(Tape& tape, std::uint32_t value) override;
  /// Makes `values` present in one run. Other values stay present unless a budget forces them out.
  void compute(Tape& tape, std::span<const ValueId> values);
  void on_clear(Tape&) noexcept override {}
  /// Called before the engine runs or plans `tape` for somebody who asked for `asked`; returns the
  /// options to run with: those, and the evaluator's budget where they have none.
  virtual RunOptions prepare(Tape& tape, const RunOptions& asked);
  /// What is computed for values of `tape`: they themselves, or where the evaluator records a tape
  /// of its own, values of that one, in the dtypes of those asked for.
  virtual std::vector<Var> computed_for(Tape& tape, std::span<const Var> values);
  /// The precision that tapes are computed in; empty where it is the one they are recorded in.
  virtual std::string precision() const { return {}; }

  Engine& engine() { return *engine_; }
  /// What computes from here on. For an evaluator that nothing was recorded with.
  void set_engine(std::shared_ptr<Engine> engine) { engine_ = std::move(engine); }
  const RunOptions& options() const { return options_; }
  /// For what is computed from here on. Not for an eager evaluator, which has kept to another one.
  virtual void set_memory_budget(Bytes budget) { options_.memory_budget = budget; }

  const std::shared_ptr<Engine>& shared_engine() const { return engine_; }

 private:
  RunOptions options_;
  std::shared_ptr<Engine> engine_;
};

/// Computes nothing until a value or a gradient is asked for, and then plans the whole of it.
/// `options` apply to values asked for one by one. `backward` and `evaluate` have options of their
/// own; where these have no budget, they run within that of `options`.
std::shared_ptr<Evaluator> lazy(RunOptions options = {});

/// Computes every value as it is recorded, so that values can be looked at in a debugger.
///
/// Without a budget each is kept until a `backward` with one, or the tape, lets go. With one, the
/// values on the tape and the workspace of the operation that runs never take more, from the first
/// operation recorded on: values are dropped when memory runs short, those first that are large,
/// idle and cheap to compute again (see checkpoint/online_eviction.h), and computed again when they
/// are read or asked for. Leaves do not count, nor does a value that was dropped while the user
/// holds a Tensor of it: it is his until he lets go, and comes back for free until then. Where an
/// operation, or a value asked for, does not fit, `BudgetError` says what it takes, before its
/// kernel runs, and names a budget within which all that is recorded so far, and that operation,
/// fit; the operation is taken off the tape again. It is no promise that a larger budget recomputes
/// less. `backward` and `evaluate` run within a budget of their own when they are given one, else
/// within this one.
///
/// `options.threads`, `options.anomaly` and `options.machine` apply while recording. Throws
/// `ArgumentError` for a negative budget and for what has no effect while recording: a planner, a
/// way of handling memory, since every value has storage of its own, and profiling, since there is
/// no report. `backward` takes these; an `Execution` in eager mode profiles what it records too.
std::shared_ptr<Evaluator> eager(RunOptions options = {});

/// `eager` for an `Execution`, whose report has what is computed while it records.
std::shared_ptr<Evaluator> eager_of_execution(RunOptions options);

/// Computes stage by stage: within a stage nothing is computed until it is asked for, and planned
/// and fused as on a lazy tape; when the stage ends, what its nodes have made and none of them read
/// is computed, and kept beside what is there if the budget allows. A stage ends where another
/// outermost `Tape::scope` begins or none is left, or at a limit, with the node that reaches it; it
/// is computed when the next node is recorded. Scopes of one name side by side are one stage.
///
/// So errors of kernels come near the line that caused them, and programs that look at values, or
/// record for long, are computed in pieces worth planning. Values inside a stage that are read
/// later are computed again from those at its ends: for a later stage once, and for a backward
/// part. A stage looks at the whole tape once, so stages of a few nodes are dear on long tapes.
/// `options` apply to each stage. `backward` and `evaluate` have options of their own; where these
/// have no budget, they run within that of `options`. Throws `ArgumentError` for a limit below
/// one.
std::shared_ptr<Evaluator> hybrid(RunOptions options = {}, StageLimits limits = {});

}  // namespace palimpsest
