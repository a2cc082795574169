#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "autodiff/evaluator.h"
#include "autodiff/export.h"
#include "autodiff/in_use.h"
#include "autodiff/var.h"
#include "checkpoint/meter.h"
#include "strategy/base/options.h"
#include "strategy/base/stage_limits.h"

namespace palimpsest PALIMPSEST_EXPORT {

class Engine;

/// The purpose for which engines are in use.
inline constexpr InUse::Purpose engine_is_running{InUse::Level::computes,
                                                  "a run or plan of this evaluator is in progress"};

/// An evaluator with an engine, which compiles and runs tapes and keeps plans. Members that change
/// it throw `TapeError` while it runs or plans a tape. `backward` runs on
/// it, and gives a lazy one to a tape without an evaluator. Tapes that share an evaluator share
/// plans and memory.
class EngineEvaluator : public Evaluator {
 public:
  explicit EngineEvaluator(RunOptions options);
  EngineEvaluator(RunOptions options, std::shared_ptr<Engine> engine);

  /// Counts the bytes that runs allocate.
  const Meter& meter() const;
  /// Number of programs and budgets planned so far. A training loop of one structure plans once.
  std::uint64_t plans_made() const;
  /// Returns the memory kept for the next run to the system, except what is still held.
  void release_memory();

  /// Makes `values` present in one run, as `Var::value` does. Other values stay present unless a
  /// budget forces them out.
  void compute(Tape& tape, std::span<const ValueId> values) override;
  Buffer room_beside(Tape& tape, Bytes held,
                     const std::function<Bytes(Bytes budget)>& plan) override;

  void on_clear(Tape&) noexcept override {}
  /// Called before the engine runs or plans `tape` with the options `asked`. Returns the options to
  /// use: those given, with the evaluator's budget if they have none.
  virtual RunOptions prepare(Tape& tape, const RunOptions& asked);
  /// The values that are computed for values of `tape`: usually the same ones. If the evaluator
  /// records a tape of its own, they are values of that tape, in the dtypes of `values`.
  virtual std::vector<Var> computed_for(Tape& tape, std::span<const Var> values);
  /// To be called before `computed_for`, and held while its values are in use, where nodes may be
  /// temporary. Then what is recorded on a tape of its own is removed afterwards. May be null.
  virtual std::shared_ptr<const void> hold_temporary(Tape& tape);
  /// The precision that tapes are computed in. Empty if it is the recorded one.
  virtual std::string precision() const { return {}; }

  /// The engine that compiles and runs; evaluators with one engine share plans and memory.
  Engine& engine() { return *engine_; }
  /// Sets the engine of later computations. Only before anything was recorded with this evaluator.
  void set_engine(std::shared_ptr<Engine> engine);
  /// The options that were given, with the budget that was set last.
  const RunOptions& options() const { return options_; }
  /// Sets the budget of later computations. Not for an eager evaluator, which has already applied
  /// its own.
  virtual void set_memory_budget(Bytes budget);

  /// The engine, for `set_engine` of another evaluator.
  const std::shared_ptr<Engine>& shared_engine() const { return engine_; }

 private:
  RunOptions options_;
  std::shared_ptr<Engine> engine_;
};

/// Computes nothing until a value or a gradient is requested, and then plans everything as a whole.
/// `options` apply to values requested one by one. `backward` and `evaluate` have their own
/// options; if those have no budget, the one in `options` applies.
std::shared_ptr<EngineEvaluator> lazy(RunOptions options = {});

/// Computes every value as it is recorded, so that a debugger can show values. A run that needs a
/// value from before the library changed a leaf throws `TapeError`; lazy and hybrid tapes compute
/// such a value again.
///
/// Without a budget each value is kept until a `backward` with a budget, or the tape, drops it.
/// With a budget, the values on the tape plus the workspace of the running operation never exceed
/// it, from the first recorded operation on. When memory runs short, the evaluator drops values
/// that are large, idle and cheap to recompute (DTR, Kirisame et al., 2021). They are recomputed
/// when they are read or requested. A larger budget is not guaranteed to recompute less.
///
/// Leaves do not count towards the budget. Neither does a dropped value while the user holds a
/// `Tensor` of it: it belongs to the user until then, and comes back for free. If an operation or a
/// requested value does not fit, `BudgetError` is thrown before its kernel runs, and the operation
/// is removed from the tape. The error states the bytes required. It also names a budget that is
/// enough for everything recorded so far and that operation. `backward` and `evaluate` use their
/// own budget if they are given one, otherwise this one.
///
/// `options.threads`, `options.anomaly` and `options.machine` apply while recording. Throws
/// `ArgumentError` for a negative budget and for options without effect while recording. These are
/// a planner, an allocation policy (every value has its own storage) and profiling (there is no
/// report). `backward` accepts these; an `Execution` in eager mode also profiles what it records.
std::shared_ptr<EngineEvaluator> eager(RunOptions options = {});

/// `eager` for an `Execution`, whose report includes what is computed while recording.
std::shared_ptr<EngineEvaluator> eager_of_execution(RunOptions options);

/// Computes stage by stage. Within a stage nothing is computed until it is requested, and the stage
/// is planned and fused as on a lazy tape. At its end, those results are computed that none of its
/// own nodes read. They are kept in addition to the values already there, if the budget allows.
///
/// A stage ends where another outermost `Tape::scope` begins or the last one ends, or with the node
/// that reaches a limit. It is computed when the next node is recorded. Consecutive scopes of the
/// same name are one stage.
///
/// Kernel errors therefore occur near the line that caused them. Programs that look at values, or
/// record for long, are computed in parts large enough for planning. Values inside a stage that are
/// read later are recomputed from those at its ends: once for later stages, and once for a backward
/// part. A stage visits the whole tape once, so stages of a few nodes are expensive on long tapes.
///
/// `options` apply to each stage. `backward` and `evaluate` have their own options; if those have
/// no budget, the one in `options` applies. Throws `ArgumentError` for a limit below one.
std::shared_ptr<EngineEvaluator> hybrid(RunOptions options = {}, StageLimits limits = {});

}  // namespace palimpsest
