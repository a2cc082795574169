#include "strategy/execution/execution.h"

#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <optional>

#include "strategy/accumulator.h"
#include "strategy/execution/batch_parts.h"
#include "strategy/execution/replica.h"
#include "strategy/parameters.h"
#include "strategy/precision/loss_scaler.h"

namespace palimpsest {
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

/// Sums are made, and counted, for those that are given.
void require_all_given(Tape& tape, std::span<const Tensor> parameters) {
  const std::size_t recorded = parameters_of(tape).size();
  if (recorded == parameters.size()) return;
  throw ArgumentError("[execution] the model records " + std::to_string(recorded) +
                      " parameters and is given " + std::to_string(parameters.size()) +
                      "; where a batch is cut into parts, give all of them");
}

}  // namespace

struct Execution::State {
  State(ExecutionStrategy chosen, LossReduction of_loss)
      : strategy(std::move(chosen)),
        reduction(of_loss),
        threads(strategy.thread_count()),
        arena(threads) {
    require_valid(strategy);
    if (strategy.precision && strategy.precision->needs_scaling()) scaler.emplace();
  }

  /// The loss that is differentiated: for replicas that record at once.
  Var scaled(const Var& loss) {
    if (!scaler) return loss;
    const std::lock_guard lock(scaling);
    return scaler->scale(loss);
  }

  /// Gradients, and a loss, that are scaled no more.
  Gradients finish(const Gradients& sum) {
    Report report_of_all = take_report();
    Tensor loss = sum.loss();
    if (scaler) {
      report_of_all.loss_scale = scaler->scale();
      report_of_all.overflowed = !arena.execute([&] { return scaler->unscale(sum); });
      loss = Tensor::scalar(scaler->loss(), loss.dtype());
    }
    return Gradients(std::move(loss), {sum.begin(), sum.end()}, std::move(report_of_all));
  }

  /// Makes replicas for parts of a batch and budgets beside so many bytes of sums of gradients.
  void begin(std::span<const Tensor> parameters, std::span<const Tensor> batch, int micro_batches) {
    int count = strategy.replicas();
    if (strategy.workers == 0 && count > 1) {
      // No more than there are examples for.
      const std::int64_t examples = examples_of(batch) / micro_batches;
      count = static_cast<int>(std::clamp<std::int64_t>(examples, 1, count));
    }
    parts = count * micro_batches;
    sums = parts > 1 ? sum_bytes(parameters) : 0;
    Bytes share = unlimited;
    if (strategy.memory_budget != unlimited) {
      share = std::max<Bytes>(0, strategy.memory_budget - sums) / count;
    }
    if (static_cast<int>(replicas.size()) == count && share == share_of_replicas) return;
    replicas.clear();
    RunOptions options = strategy.run_options();
    options.memory_budget = share;
    options.threads = std::max(1, threads / count);
    for (int r = 0; r < count; ++r) replicas.emplace_back(strategy, options, count);
    share_of_replicas = share;
  }

  /// Calls f(replica, r) for each of them, at once.
  template <class F>
  void for_replicas(F f) {
    std::vector<std::exception_ptr> errors(replicas.size());
    const auto run = [&](std::size_t r) {
      try {
        f(replicas[r], r);
      } catch (...) {
        errors[r] = std::current_exception();
      }
    };
    if (replicas.size() == 1) {
      run(0);
    } else {
      arena.execute([&] {
        tbb::parallel_for(std::size_t{0}, replicas.size(), run, tbb::simple_partitioner());
      });
    }
    pass_on(errors);
  }

  /// Of budgets that are too small for replicas, names the one that would do for all.
  void pass_on(std::span<const std::exception_ptr> errors) const {
    Bytes smallest = 0;
    std::string reason;
    for (const std::exception_ptr& error : errors) {
      if (error == nullptr) continue;
      try {
        std::rethrow_exception(error);
      } catch (const BudgetError& refused) {
        if (parts == 1 || strategy.memory_budget == unlimited) throw;
        if (refused.smallest_feasible() < smallest) continue;
        smallest = refused.smallest_feasible();
        reason = refused.what();
      }
    }
    if (smallest == 0) return;
    const Bytes all = smallest * std::ssize(replicas) + sums;
    throw BudgetError("[execution] the parts of a batch that run at once, " +
                          std::to_string(replicas.size()) + ", and sums of gradients of " +
                          std::to_string(sums) + " bytes need a budget of " + std::to_string(all) +
                          " bytes, not " + std::to_string(strategy.memory_budget) +
                          "; of one: " + reason,
                      strategy.memory_budget, all);
  }

  /// What all replicas took together.
  Report take_report() {
    Report sum;
    std::vector<Report> reports;
    for (Replica& replica : replicas) reports.push_back(replica.take_report());
    sum = reports[0];
    for (const Report& other : std::span(reports).subspan(1)) {
      sum.predicted_peak += other.predicted_peak;
      sum.measured_peak += other.measured_peak;
      sum.predicted_live_peak += other.predicted_live_peak;
      sum.measured_live_peak += other.measured_live_peak;
      sum.keep_all_peak += other.keep_all_peak;
      sum.computed += other.computed;
      sum.recomputed += other.recomputed;
      sum.allocations += other.allocations;
      sum.tape_metadata += other.tape_metadata;
      sum.planning_seconds = std::max(sum.planning_seconds, other.planning_seconds);
      sum.run_seconds = std::max(sum.run_seconds, other.run_seconds);
      sum.kernel_seconds += other.kernel_seconds;
    }
    for (Bytes* peak : {&sum.predicted_peak, &sum.measured_peak, &sum.predicted_live_peak,
                        &sum.measured_live_peak, &sum.keep_all_peak}) {
      *peak += sums;
    }
    sum.threads = threads;
    sum.replicas = static_cast<int>(replicas.size());
    sum.micro_batches = parts / sum.replicas;
    if (strategy.memory_budget != unlimited) sum.budget = strategy.memory_budget;
    return sum;
  }

  ExecutionStrategy strategy;
  LossReduction reduction;
  int threads;
  tbb::task_arena arena;
  std::optional<LossScaler> scaler;
  std::mutex scaling;
  std::vector<Replica> replicas;
  Bytes share_of_replicas = 0;
  int parts = 1;
  Bytes sums = 0;
  Report report;
};

Execution::Execution(ExecutionStrategy strategy, LossReduction reduction)
    : state_(std::make_unique<State>(std::move(strategy), reduction)) {}
Execution::~Execution() = default;
Execution::Execution(Execution&&) noexcept = default;
Execution& Execution::operator=(Execution&&) noexcept = default;

Gradients Execution::gradients(const ModelFunction& loss, std::span<const Tensor> parameters,
                               std::span<const Tensor> batch) {
  State& state = *state_;
  if (state.strategy.gradient == GradientMode::none) {
    throw ArgumentError(
        "[execution] the strategy has gradient = none; ask for value(), or choose "
        "another");
  }
  const int micro_batches = state.strategy.accumulation;
  state.begin(parameters, batch, micro_batches);
  const bool is_mean = state.reduction == LossReduction::mean;
  GradientAccumulator accumulator(
      {.steps = state.parts,
       .normalization = is_mean ? GradientNormalization::weighted : GradientNormalization::sum});
  std::vector<std::optional<Gradients>> of_parts(state.replicas.size());
  std::vector<std::int64_t> examples(of_parts.size(), 1);
  for (int micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
    for (std::optional<Gradients>& done : of_parts) done.reset();
    state.for_replicas([&](Replica& replica, std::size_t r) {
      const int part = micro_batch * static_cast<int>(of_parts.size()) + static_cast<int>(r);
      const std::vector<Tensor> tensors = part_of(batch, part, state.parts);
      if (state.parts > 1) examples[r] = examples_of(tensors);
      Tape& tape = replica.tape(micro_batch, part);
      const Var made = record(loss, tape, parameters, tensors);
      if (state.parts > 1) require_all_given(tape, parameters);
      of_parts[r] = replica.differentiate(state.scaled(made));
    });
    if (state.parts == 1) break;
    state.arena.execute([&] {
      for (std::size_t r = 0; r < of_parts.size(); ++r) {
        accumulator.step(*of_parts[r], examples[r]);
      }
    });
  }
  const Gradients sum = state.parts == 1
                            ? std::move(*of_parts[0])
                            : state.arena.execute([&] { return accumulator.gradients(); });
  return state.finish(sum);
}

Tensor Execution::value(const ModelFunction& model, std::span<const Tensor> parameters,
                        std::span<const Tensor> batch) {
  State& state = *state_;
  state.begin(parameters, batch, 1);
  std::vector<Tensor> made(state.replicas.size());
  state.for_replicas([&](Replica& replica, std::size_t r) {
    const std::vector<Tensor> tensors = part_of(batch, static_cast<int>(r), state.parts);
    made[r] = replica.evaluate(record(model, replica.tape_for_values(), parameters, tensors));
  });
  state.report = state.take_report();
  return put_together(made);
}

const ExecutionStrategy& Execution::strategy() const { return state_->strategy; }
const Report& Execution::report() const { return state_->report; }

}  // namespace palimpsest
