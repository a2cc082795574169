#include "strategy/execution/replica.h"

#include <algorithm>

#include "checkpoint/engine_planner.h"
#include "strategy/base/free_memory.h"
#include "strategy/base/loss_counts.h"
#include "strategy/base/parameters.h"
#include "strategy/base/record_model.h"
#include "strategy/compile/fusion/fingerprint.h"
#include "strategy/differentiate.h"
#include "strategy/evaluators/computed_outputs.h"
#include "strategy/execution/precision/precise.h"
#include "strategy/run/report_of.h"

namespace palimpsest {
namespace {

std::shared_ptr<EngineEvaluator> evaluator_in_mode(const ExecutionStrategy& strategy,
                                                   RunOptions options) {
  options.planner = nullptr;  // planners apply to gradients only
  switch (strategy.mode) {
    case ExecutionMode::lazy:
      return lazy(std::move(options));
    case ExecutionMode::hybrid:
      return hybrid(std::move(options), strategy.stage);
    case ExecutionMode::eager:
      return eager_of_execution(std::move(options));
  }
  throw InternalError("an execution mode has no evaluator");
}

std::shared_ptr<EngineEvaluator> evaluator_for(const ExecutionStrategy& strategy,
                                               RunOptions options, std::shared_ptr<Engine> engine) {
  std::shared_ptr<EngineEvaluator> evaluator = evaluator_in_mode(strategy, std::move(options));
  evaluator->set_engine(std::move(engine));
  if (strategy.precision) evaluator = precise(*strategy.precision, std::move(evaluator));
  return evaluator;
}

}  // namespace

Replica::Replica(const ExecutionStrategy& strategy, RunOptions options, int count, Bytes beside,
                 std::shared_ptr<Engine> engine)
    : options_(std::move(options)),
      count_(count),
      has_fraction_(strategy.checkpoint_fraction.has_value()),
      computes_while_recording_(strategy.mode != ExecutionMode::lazy) {
  if (strategy.parallelism == ParallelMode::model_parallel) {
    devices_ = std::make_unique<ModelParallel>(strategy);
  }
  evaluator_ =
      devices_ ? devices_->evaluator() : evaluator_for(strategy, options_, std::move(engine));
  evaluator_->engine().keep_values_within_first_run();
  set_beside(beside);
}

void Replica::set_budget(Bytes budget) {
  options_.memory_budget = budget;
  if (!computes_while_recording_) evaluator_->set_memory_budget(budget);
}

void Replica::set_beside(Bytes beside) {
  evaluator_->engine().set_free_memory([count = count_, beside] {
    const Bytes free = free_memory();
    return free == unlimited ? free : std::max<Bytes>(0, free - beside) / count;
  });
}

void Replica::set_observer(RunObserver* observer) { evaluator_->engine().set_observer(observer); }

void Replica::begin() {
  // Values left by a call that failed take memory.
  for (Tape* const tape : std::exchange(unfinished_, {})) tape->clear();
  take_report();
}

Tape& Replica::cleared(std::unique_ptr<Tape>& tape, int part, const Tape& count) {
  if (tape == nullptr) tape = std::make_unique<Tape>(evaluator_);
  if (std::ranges::find(unfinished_, tape.get()) == unfinished_.end()) {
    unfinished_.push_back(tape.get());
  }
  tape->clear();
  begin_part(*tape, part, count);
  if (computes_while_recording_) {
    const Meter& meter = evaluator_->engine().meter();
    meter.reset_peaks();
    held_ = meter.live();
    evaluator_->engine().collect();
  }
  return *tape;
}

Tape& Replica::tape(int micro_batch, int part, const Tape& count) {
  const auto index = static_cast<std::size_t>(micro_batch);
  if (tapes_.size() <= index) tapes_.resize(index + 1);
  return cleared(tapes_[index], part, count);
}

LossAndOutputs Replica::computed(const LossAndOutputs& made) {
  return computed_for(*evaluator_, made);
}

std::size_t Replica::first_gradient(const LossAndOutputs& values) {
  LossAndOutputs all = values;  // as `backward` computes them
  RecordedCounts(values.loss).append_to(all);
  return computed_values(computed(all)).size();
}

void Replica::release_memory() {
  evaluator_->release_memory();
  if (devices_ != nullptr) devices_->release_memory();
}

void Replica::drop_values(const LossAndOutputs& values) { drop_computed(*evaluator_, values.loss); }

template <class Run>
auto Replica::within_least(const LossAndOutputs& values, Run run) {
  if (!has_fraction_) return run(options_);
  const std::uint64_t program = hash_of_program(values, std::max(options_.threads, 1));
  if (!least_ || least_->program != program) {
    try {
      return run(options_);
    } catch (const BudgetError& error) {
      least_ = {program, error.smallest_feasible()};
    }
  }
  // Without a limit of its own, it plans the first run in full, as an estimate does.
  RunOptions options = options_;
  options.planner = engine_part(options_.planner).with_keep_all(unlimited);
  for (;;) {
    options.memory_budget = std::min(least_->budget, options_.memory_budget);
    try {
      return run(options);
    } catch (const BudgetError& error) {
      // A hybrid tape is planned differently once it has a budget, which may take a few more bytes.
      if (error.smallest_feasible() <= options.memory_budget ||
          options.memory_budget == options_.memory_budget) {
        throw;
      }
      least_->budget = error.smallest_feasible();
    }
  }
}

Gradients Replica::on_devices(const LossAndOutputs& values) {
  const RecordedCounts counts(values.loss);
  if (counts.empty()) return devices_->gradients(values);
  LossAndOutputs all = values;
  counts.append_to(all);
  const Gradients made = devices_->gradients(all);
  const auto outputs = made.outputs();
  const auto requested = outputs.first(values.outputs.size());
  Gradients gradients(made.loss(), {made.begin(), made.end()}, made.report(),
                      {requested.begin(), requested.end()});
  gradients.set_counts(counts.read(outputs.last(counts.size())));
  return gradients;
}

Gradients Replica::differentiate(const LossAndOutputs& values) {
  if (devices_) {
    Gradients gradients = on_devices(values);
    note(gradients.report(), values.loss.tape());
    return gradients;
  }
  const Where where = where_recorded(values.loss);
  Gradients gradients = within_least(values, [&](const RunOptions& options) {
    return palimpsest::differentiate(values, options, where);
  });
  drop_computed(*evaluator_, values.loss);
  note(gradients.report(), values.loss.tape());
  return gradients;
}

void Replica::check(const LossAndOutputs& values) {
  if (devices_) {
    devices_->forecast(values, true);
    return;
  }
  const Where where = where_recorded(values.loss);
  within_least(values,
               [&](const RunOptions& options) { return plan_backward(values, options, where); });
}

Forecast Replica::forecast(const LossAndOutputs& values, const Rates& rates) {
  const Where where = where_recorded(values.loss);
  return within_least(values, [&](const RunOptions& options) {
    return forecast_backward(values, options, rates, where);
  });
}

Tensor Replica::evaluate(const Var& value) {
  if (devices_) {
    Report report;
    Tensor made = devices_->value(value, report);
    note(std::move(report), value.tape());
    return made;
  }
  Report report = palimpsest::evaluate({&value, 1}, options_for_values(), where_recorded(value));
  Tensor tensor = value.value();
  drop_computed(*evaluator_, value);
  note(std::move(report), value.tape());
  return tensor;
}

Forecast Replica::forecast_value(const Var& value, const Rates& rates) {
  return forecast_values({&value, 1}, options_for_values(), rates, where_recorded(value));
}

RunOptions Replica::options_for_values() const {
  RunOptions options = options_;
  options.planner = nullptr;
  return options;
}

void Replica::note(Report of_part, Tape& finished) {
  std::erase(unfinished_, &finished);
  if (computes_while_recording_) {
    Report run = evaluator_->engine().take_collected();
    add_counts(of_part, run);
    append_run(run, of_part);
    of_part.steps = std::move(run.steps);
    of_part.planning_seconds = run.planning_seconds;
    of_part.compute_overhead = run.compute_overhead;
    of_part.run_seconds = run.run_seconds;
    // No plan predicts what was computed while the tape was recorded.
    const Meter& meter = evaluator_->engine().meter();
    for (Bytes* peak : {&of_part.measured_peak, &of_part.predicted_peak,
                        &of_part.measured_live_peak, &of_part.predicted_live_peak}) {
      *peak = std::max(*peak, meter.peak() - held_);
    }
  }
  Report sum = of_part.measured_peak >= report_.measured_peak ? of_part : report_;
  const Report& other = of_part.measured_peak >= report_.measured_peak ? report_ : of_part;
  add_counts(sum, other);
  sum.planning_seconds += other.planning_seconds;
  sum.run_seconds += other.run_seconds;
  sum.predicted_peak = std::max(sum.predicted_peak, other.predicted_peak);
  report_ = std::move(sum);
}

}  // namespace palimpsest
