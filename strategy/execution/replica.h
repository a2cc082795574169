#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "strategy/backward.h"
#include "strategy/base/execution_strategy.h"
#include "strategy/evaluators/evaluators.h"
#include "strategy/parallel/devices/model_parallel.h"

namespace palimpsest {

class RunWatch;

/// One of the programs that an execution runs at once: its evaluator, and its parts of a batch.
class Replica {
 public:
  /// `count` replicas have `options.threads` threads each, and share the memory that is free but
  /// for the bytes `beside` them. The engine is one that nothing was computed by yet.
  Replica(const ExecutionStrategy& strategy, RunOptions options, int count, Bytes beside,
          std::shared_ptr<Engine> engine = std::make_shared<Engine>());

  /// A tape for a micro-batch, cleared: one for each, so that random operations draw the same
  /// numbers however many replicas there are. `part` is the place of the part in the batch, `count`
  /// a tape that was cleared as often as there were such batches: streams are fresh for each.
  Tape& tape(int micro_batch, int part, const Tape& count);
  /// A tape for values, cleared.
  Tape& tape_for_values(int part, const Tape& count) { return cleared(for_values_, part, count); }

  /// Who is told of runs that make gradients, from here on.
  void set_watch(RunWatch* watch);
  /// For what runs from here on. What an eager or hybrid mode computes while it records keeps to
  /// the budget that the replica was made with.
  void set_budget(Bytes budget);
  /// Of the memory that is free, what something else is still to take.
  void set_beside(Bytes beside);
  /// The gradients of a loss recorded there; nothing stays present.
  Gradients differentiate(const Var& loss);
  /// A value recorded there; nothing stays present.
  Tensor evaluate(const Var& value);

  /// The value itself or, in a precision, the one that is computed in its place on another tape.
  Var computed(const Var& made);
  /// What `differentiate` and `evaluate` would take.
  Forecast forecast(const Var& loss, const Rates& rates);
  Forecast forecast_value(const Var& value, const Rates& rates);

  /// Throws what `differentiate` would throw before any work.
  void check(const Var& loss);

  /// What the parts since the last call took: counts added up, the largest predicted peak, and the
  /// rest of the part that took most.
  Report take_report() { return std::exchange(report_, {}); }

 private:
  Tape& cleared(std::unique_ptr<Tape>& tape, int part, const Tape& count);
  /// From the tape of a value that was made, and from the one that is computed in its place.
  void drop_all(const Var& made);
  /// `run(options)`, with the least budget there is for `loss` where the fraction it is to take of
  /// what keeping all takes is too little.
  template <class Run>
  auto within_least(const Var& loss, Run run);
  RunOptions options_for_values() const;
  void note(Report of_part);

  RunOptions options_;
  int count_;
  bool has_fraction_;
  bool computes_while_recording_;
  std::unique_ptr<ModelParallel> devices_;  // null without
  std::shared_ptr<EngineEvaluator> evaluator_;
  std::vector<std::unique_ptr<Tape>> tapes_;  // by micro-batch
  std::unique_ptr<Tape> for_values_;
  Tape* unfinished_ = nullptr;  // what is recorded there was not computed to its end
  Report report_;
  Bytes held_ = 0;  // by users, of what earlier runs made
  /// The budget for a program of so many nodes and bytes, where a fraction of what keeping all
  /// takes was too little.
  struct Least {
    std::uint32_t nodes;
    Bytes bytes;
    Bytes budget;
  };
  std::optional<Least> least_;
};

}  // namespace palimpsest
