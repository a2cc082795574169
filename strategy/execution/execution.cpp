#include "strategy/execution/execution.h"

#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <exception>
#include <optional>

#include "strategy/accumulator.h"
#include "strategy/execution/batch_parts.h"
#include "strategy/forms.h"

namespace palimpsest {
namespace {

std::shared_ptr<Evaluator> evaluator_for(const ExecutionStrategy& strategy, RunOptions options) {
  switch (strategy.mode) {
    case ExecutionMode::lazy:
      return lazy(std::move(options));
    case ExecutionMode::hybrid:
      return hybrid(std::move(options), strategy.stage);
    case ExecutionMode::eager:
      options.planner = nullptr;
      return eager(std::move(options));
  }
  throw InternalError("an execution mode has no evaluator");
}

/// One of the programs that run at once. Its parts of a batch have a tape each, so that random
/// operations draw the same numbers however many replicas there are.
struct Replica {
  std::shared_ptr<Evaluator> evaluator;
  std::vector<std::unique_ptr<Tape>> tapes;  // by micro-batch
  Report report;                             // of its part that took most
  std::optional<Bytes> least;  // budget, where a fraction of keep-all's bytes was too little

  Tape& tape(int micro_batch, int part) {
    const auto index = static_cast<std::size_t>(micro_batch);
    while (tapes.size() <= index) {
      tapes.push_back(std::make_unique<Tape>(evaluator));
      tapes.back()->set_seed(tapes.back()->seed() + static_cast<std::uint64_t>(part));
    }
    tapes[index]->clear();
    return *tapes[index];
  }

  Gradients differentiate(const Var& loss, const ExecutionStrategy& strategy, Bytes share) {
    RunOptions options = strategy.run_options(share);
    if (!strategy.checkpoint_fraction) return backward(loss, options);
    const auto within = [&](Bytes bytes) {
      RunOptions least_options = options;
      least_options.planner = nullptr;
      least_options.memory_budget = std::min(bytes, share);
      return backward(loss, least_options);
    };
    if (least) {
      try {
        return within(*least);
      } catch (const BudgetError&) {
        least.reset();  // another program
      }
    }
    try {
      return backward(loss, options);
    } catch (const BudgetError& error) {
      least = error.smallest_feasible();
      return within(*least);
    }
  }

  void note(const Report& of_part) {
    if (of_part.measured_peak >= report.measured_peak) report = of_part;
  }
};

}  // namespace

struct Execution::State {
  State(ExecutionStrategy chosen, LossReduction of_loss)
      : strategy(std::move(chosen)), reduction(of_loss) {
    require_valid(strategy);
    replicas.resize(static_cast<std::size_t>(strategy.replicas()));
    arena.initialize(std::min(strategy.replicas(), checked_threads(0)));
  }

  int replica_count() const { return static_cast<int>(replicas.size()); }

  /// Begins a run with so many bytes for sums of gradients.
  void begin(Bytes for_sums) {
    sums = for_sums;
    const Bytes budget = strategy.memory_budget;
    if (budget != unlimited) share = std::max<Bytes>(0, (budget - sums) / replica_count());
    for (Replica& replica : replicas) {
      replica.report = {};
      if (replica.evaluator == nullptr) {
        replica.evaluator = evaluator_for(strategy, strategy.run_options(share));
      }
    }
  }

  /// Calls f(part, tape, tensors of the part) for the parts of a micro-batch, at once.
  template <class F>
  void for_parts(int micro_batch, int micro_batches, std::span<const Tensor> batch, F f) {
    const int parts = micro_batches * replica_count();
    std::vector<std::exception_ptr> errors(replicas.size());
    const auto run = [&](int r) {
      const int part = micro_batch * replica_count() + r;
      try {
        f(replicas[static_cast<std::size_t>(r)],
          replicas[static_cast<std::size_t>(r)].tape(micro_batch, part),
          part_of(batch, part, parts), static_cast<std::size_t>(r));
      } catch (...) {
        errors[static_cast<std::size_t>(r)] = std::current_exception();
      }
    };
    if (replica_count() == 1) {
      run(0);
    } else {
      arena.execute([&] { tbb::parallel_for(0, replica_count(), run, tbb::simple_partitioner()); });
    }
    for (const std::exception_ptr& error : errors) {
      if (error != nullptr) pass_on(error);
    }
  }

  /// Says of a budget that is too small for a replica which one would do for all.
  [[noreturn]] void pass_on(const std::exception_ptr& error) const {
    try {
      std::rethrow_exception(error);
    } catch (const BudgetError& refused) {
      if (strategy.parts() == 1) throw;
      const Bytes smallest = refused.smallest_feasible() * replica_count() + sums;
      throw BudgetError("[execution] " + std::to_string(replica_count()) +
                            " replicas and sums of gradients do not fit a budget of " +
                            std::to_string(strategy.memory_budget) + " bytes; the smallest is " +
                            std::to_string(smallest) + " (of one replica: " + refused.what() + ")",
                        strategy.memory_budget, smallest);
    }
  }

  /// What all replicas took together.
  Report combined(Report report) const {
    report.budget = strategy.memory_budget;
    report.replicas = replica_count();
    report.micro_batches = strategy.accumulation;
    report.predicted_peak = report.measured_peak = sums;
    report.predicted_live_peak = report.measured_live_peak = sums;
    report.keep_all_peak = sums;
    report.threads = 0;
    for (const Replica& replica : replicas) {
      report.predicted_peak += replica.report.predicted_peak;
      report.measured_peak += replica.report.measured_peak;
      report.predicted_live_peak += replica.report.predicted_live_peak;
      report.measured_live_peak += replica.report.measured_live_peak;
      report.keep_all_peak += replica.report.keep_all_peak;
      report.threads += replica.report.threads;
    }
    return report;
  }

  ExecutionStrategy strategy;
  LossReduction reduction;
  std::vector<Replica> replicas;
  tbb::task_arena arena;
  Bytes sums = 0;
  Bytes share = unlimited;  // of the budget, of each replica
  Report report;
};

Execution::Execution(ExecutionStrategy strategy, LossReduction reduction)
    : state_(std::make_unique<State>(std::move(strategy), reduction)) {}
Execution::~Execution() = default;
Execution::Execution(Execution&&) noexcept = default;
Execution& Execution::operator=(Execution&&) noexcept = default;

namespace {

/// Bytes of the sums that an accumulator keeps: f64 for f64 parameters, else f32, and a rounded
/// gradient beside those of 16 bits.
Bytes sum_bytes(std::span<const Tensor> parameters) {
  Bytes bytes = 0;
  for (const Tensor& parameter : parameters) {
    const bool is_half = size_of(parameter.dtype()) < 4;
    bytes += is_half ? 3 * parameter.bytes() : parameter.bytes();
  }
  return bytes;
}

Var record(const ModelFunction& model, Tape& tape, std::span<const Tensor> parameters,
           std::span<const Tensor> batch) {
  std::vector<Var> inputs;
  for (const Tensor& parameter : parameters) inputs.push_back(tape.parameter(parameter));
  std::vector<Var> examples;
  for (const Tensor& tensor : batch) examples.push_back(tape.constant(tensor));
  const Var made = model(tape, inputs, examples);
  if (!made.defined() || !made.belongs_to(tape)) {
    throw ArgumentError("[execution] the model returns no value of the tape it was given");
  }
  return made;
}

}  // namespace

Gradients Execution::gradients(const ModelFunction& loss, std::span<const Tensor> parameters,
                               std::span<const Tensor> batch) {
  State& state = *state_;
  const ExecutionStrategy& strategy = state.strategy;
  if (strategy.gradient == GradientMode::none) {
    throw ArgumentError(
        "[execution] the strategy has gradient = none; ask for value(), or choose "
        "full or checkpointed");
  }
  state.begin(strategy.parts() > 1 ? sum_bytes(parameters) : 0);
  std::vector<std::optional<Gradients>> of_parts(state.replicas.size());
  std::vector<std::int64_t> examples(state.replicas.size());
  const bool is_mean = state.reduction == LossReduction::mean;
  GradientAccumulator accumulator(
      {.steps = strategy.parts(),
       .normalization = is_mean ? GradientNormalization::weighted : GradientNormalization::sum});
  for (int micro_batch = 0; micro_batch < strategy.accumulation; ++micro_batch) {
    for (std::optional<Gradients>& done : of_parts) done.reset();
    state.for_parts(
        micro_batch, strategy.accumulation, batch,
        [&](Replica& replica, Tape& tape, const std::vector<Tensor>& part, std::size_t r) {
          const Var made = record(loss, tape, parameters, part);
          of_parts[r] = replica.differentiate(made, strategy, state.share);
          tape.drop(made.id());
          replica.note(of_parts[r]->report());
          examples[r] = strategy.parts() > 1 ? examples_of(part) : 1;
        });
    if (strategy.parts() == 1) break;
    for (std::size_t r = 0; r < of_parts.size(); ++r) accumulator.step(*of_parts[r], examples[r]);
  }
  Gradients sum = strategy.parts() == 1 ? std::move(*of_parts[0]) : accumulator.gradients();
  std::vector<Gradients::Entry> entries(sum.begin(), sum.end());
  return Gradients(sum.loss(), std::move(entries), state.combined(sum.report()));
}

Tensor Execution::value(const ModelFunction& model, std::span<const Tensor> parameters,
                        std::span<const Tensor> batch) {
  State& state = *state_;
  state.begin(0);
  std::vector<Tensor> made(state.replicas.size());
  RunOptions options = state.strategy.run_options(state.share);
  options.planner = nullptr;  // which may be one for gradients
  state.for_parts(
      0, 1, batch,
      [&](Replica& replica, Tape& tape, const std::vector<Tensor>& part, std::size_t r) {
        const Var output = record(model, tape, parameters, part);
        replica.note(evaluate({&output, 1}, options));
        made[r] = output.value();
        tape.clear();
      });
  state.report = state.combined(state.replicas[0].report);
  return put_together(made);
}

const ExecutionStrategy& Execution::strategy() const { return state_->strategy; }
const Report& Execution::report() const { return state_->report; }

}  // namespace palimpsest
