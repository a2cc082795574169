#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "autodiff/export.h"
#include "strategy/backward.h"
#include "strategy/base/execution_strategy.h"
#include "strategy/evaluators/engine.h"
#include "strategy/evaluators/evaluators.h"
#include "strategy/parallel/devices/model_parallel.h"

namespace palimpsest PALIMPSEST_EXPORT {  // for palimpsest-mpi

class RunObserver;

/// One of the program instances that an execution runs in parallel. It has an evaluator, and
/// computes its parts of a batch.
class Replica {
 public:
  /// Each of `count` replicas has `options.threads` threads. They share the free memory, minus
  /// `beside` bytes. The engine must not have computed anything yet.
  Replica(const ExecutionStrategy& strategy, RunOptions options, int count, Bytes beside,
          std::shared_ptr<Engine> engine = std::make_shared<Engine>());

  /// Begins a batch: clears what a call that failed has left.
  void begin();
  /// A cleared tape for a micro-batch. Each micro-batch has its own tape, so that random operations
  /// draw the same numbers for any number of replicas. `part` is the index of the part in the
  /// batch. `count` is a tape that was cleared once for each such batch, so that every batch has
  /// fresh random streams.
  Tape& tape(int micro_batch, int part, const Tape& count);
  /// A cleared tape for values.
  Tape& tape_for_values(int part, const Tape& count) { return cleared(for_values_, part, count); }

  /// Sets the observer of later runs that compute gradients.
  void set_observer(RunObserver* observer);
  /// Sets the budget of later runs. An eager or hybrid mode computes while it records; that part
  /// keeps to the budget that the replica was made with.
  void set_budget(Bytes budget);
  /// Bytes of free memory reserved for other consumers.
  void set_beside(Bytes beside);
  /// The gradients of a loss recorded on this replica's tape. No value stays present.
  Gradients differentiate(const LossAndOutputs& values);
  /// The tensor of a value recorded on this replica's tape. No value stays present.
  Tensor evaluate(const Var& value);

  /// The values themselves or, when a precision is set, their translations on another tape.
  LossAndOutputs computed(const LossAndOutputs& made);
  /// For an observer of `differentiate`: the index of the first gradient among the run's targets.
  std::size_t first_gradient(const LossAndOutputs& values);
  /// Forecasts of `differentiate` and `evaluate`.
  Forecast forecast(const LossAndOutputs& values, const Rates& rates);
  Forecast forecast_value(const Var& value, const Rates& rates);

  /// Throws what `differentiate` would throw before any work.
  void check(const LossAndOutputs& values);
  /// Drops the values that a model has looked at, until `differentiate` computes them again.
  void drop_values(const LossAndOutputs& values);
  /// Returns the memory kept for the next run to the system.
  void release_memory();

  /// The report of all parts since the last call. It has the sum of the counts and the largest
  /// predicted peak; the rest is from the part with the largest measured peak.
  Report take_report() { return std::exchange(report_, {}); }

 private:
  Tape& cleared(std::unique_ptr<Tape>& tape, int part, const Tape& count);
  Gradients on_devices(const LossAndOutputs& values);
  /// Runs `run(options)`. Where the checkpoint fraction gives too small a budget for `loss`, runs
  /// it with the smallest feasible budget instead.
  template <class Run>
  auto within_least(const LossAndOutputs& values, Run run);
  RunOptions options_for_values() const;
  void note(Report of_part, Tape& finished);

  RunOptions options_;
  int count_;
  bool has_fraction_;
  bool computes_while_recording_;
  std::unique_ptr<ModelParallel> devices_;  // null without model parallelism
  std::shared_ptr<EngineEvaluator> evaluator_;
  std::vector<std::unique_ptr<Tape>> tapes_;  // by micro-batch
  std::unique_ptr<Tape> for_values_;
  std::vector<Tape*> unfinished_;  // their computation has not finished
  Report report_;
  Bytes held_ = 0;  // bytes of earlier results that users still hold
  /// The smallest feasible budget for a program, where the checkpoint fraction gave too small a
  /// budget.
  struct Least {
    std::uint64_t program;  ///< `hash_of_program`
    Bytes budget;
  };
  std::optional<Least> least_;
};

}  // namespace palimpsest
