#include "strategy/execution/execution.h"

#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "autodiff/enumerators.h"
#include "autodiff/usable_threads.h"
#include "strategy/base/batch_parts.h"
#include "strategy/base/counted_call.h"
#include "strategy/base/enumerators.h"
#include "strategy/base/loss_counts.h"
#include "strategy/base/parameters.h"
#include "strategy/base/part_outputs.h"
#include "strategy/base/record_model.h"
#include "strategy/base/updates.h"
#include "strategy/compile/fusion/fingerprint.h"
#include "strategy/execution/batch_cut.h"
#include "strategy/execution/recorded_parts.h"
#include "strategy/execution/replica.h"
#include "strategy/parallel/pipeline/pipeline.h"
#include "strategy/run/report_of.h"
#include "strategy/training/accumulator.h"
#include "strategy/training/loss_scaler.h"
#include "strategy/training/state_entries.h"

namespace palimpsest {
namespace {

/// Copies do not hold the memory of the run that made the tensors.
std::vector<Tensor> copies_of(std::span<const Tensor> tensors) {
  std::vector<Tensor> copies;
  for (const Tensor& tensor : tensors) copies.push_back(tensor.clone());
  return copies;
}

}  // namespace

struct Execution::State {
  State(ExecutionStrategy chosen, LossReduction of_loss)
      : strategy(std::move(chosen)),
        reduction(of_loss),
        counts(strategy),
        threads(strategy.thread_count()),
        arena(threads) {
    require_valid(strategy);
    require_enumerator(reduction, enumerators<LossReduction>, "[execution] the loss reduction");
    if (strategy.precision && strategy.precision->needs_scaling()) scaler.emplace();
    if (strategy.parallelism == ParallelMode::pipeline) pipeline.emplace(strategy, reduction);
  }

  /// The scaled loss, which is differentiated. Replicas that record in parallel may call it.
  Var scaled(const Var& loss) {
    if (!scaler) return loss;
    require_scalar(loss, where_recorded(loss));
    const std::lock_guard lock(scaling);
    return scaler->scale(loss, where_recorded(loss));
  }

  /// Records the parts that must be recorded before the first one is computed, and checks that
  /// parts of every size fit. Returns the counts that the means of the batch divide by, if it is
  /// cut.
  std::vector<double> prepare(RecordedParts& parts) {
    if (cut.parts() == 1) return {};
    const bool is_lazy = strategy.mode == ExecutionMode::lazy;
    std::vector<double> whole;
    const auto count_first = [&] {
      whole = parts.count_first();
      counts.share_with_later(whole, parts.weights(reduction));
    };
    if (!is_lazy && counts_first) count_first();
    record_round(parts, 0);
    counts_first = counts.any();
    if (!counts_first) counts.expect_none();
    if (!is_lazy && counts_first && whole.empty()) {
      count_first();
      record_round(parts, 0);
    }
    const bool counts_now = is_lazy && counts_first;
    for (int round = 0; counts_now && round < cut.micro_batches; ++round) {
      if (round > 0) record_round(parts, round);
      // Values that a model has read must neither take memory nor keep the count of its part.
      for_replicas([&](Replica& replica, std::size_t r) {
        replica.drop_values(parts[round * cut.replicas + static_cast<int>(r)]);
      });
    }
    check(parts, counts_now);
    if (!counts_now) return whole;
    try {
      whole = counts.count([this] {
        for (Replica& replica : replicas) replica.release_memory();
      });
    } catch (const BudgetError&) {
      known_to_fit.reset();  // it was by another model
      check(parts, counts_now);
      throw;
    }
    counts.share(whole, parts.weights(reduction));
    return whole;
  }

  Replica& replica_of(int part) {
    return replicas[static_cast<std::size_t>(part) % replicas.size()];
  }

  /// Records a micro-batch of each replica.
  void record_round(RecordedParts& parts, int round) {
    for_replicas(
        [&](Replica&, std::size_t r) { parts.record(round * cut.replicas + static_cast<int>(r)); });
  }

  /// Checks that a part of each size fits: the first part is the largest, and the last the
  /// smallest. `counts_now`: all parts are recorded, so all are checked. What their means divide by
  /// is still to be counted, within the same budget.
  void check(RecordedParts& parts, bool counts_now) {
    const bool is_lazy = strategy.mode == ExecutionMode::lazy;
    const bool has_more_checks =
        counts_now || cut.replicas > 1 || (is_lazy && parts.have_two_sizes());
    if (!has_more_checks || strategy.run.memory_budget == unlimited) return;
    const Fit now{hash_of_program(parts[0], threads), parts.total_examples(),
                  cut.options.memory_budget};
    if (known_to_fit == now) return;
    std::vector<int> checked{0};
    for (int part = 1; counts_now && part < cut.parts(); ++part) checked.push_back(part);
    if (!counts_now && parts.have_two_sizes()) {
      // A mode that computes while it records cannot record a later micro-batch now.
      checked.push_back(is_lazy ? cut.parts() - 1 : cut.replicas - 1);
    }
    std::vector<std::exception_ptr> errors;
    for (const int part : checked) {
      try {
        const bool is_ahead = !parts.has(part);
        // The model reads its values again, and the budget is for those of one part.
        if (is_ahead) replica_of(part).drop_values(parts[part % cut.replicas]);
        if (is_ahead) parts.record(part);
        replica_of(part).check(parts[part]);
        if (is_ahead) replica_of(part).drop_values(parts[part]);
      } catch (...) {
        errors.push_back(std::current_exception());
      }
    }
    throw_larger(refusal_of(errors), counts_now ? counts.refusal() : std::nullopt);
    known_to_fit = now;
  }

  /// The gradients and the loss, unscaled, with auxiliary outputs.
  Gradients finish(const Gradients& sum, Report report_of_all, std::vector<Tensor> outputs) {
    if (scaler) sum.keep_apart();
    std::vector<Gradients::Entry> entries(sum.begin(), sum.end());
    const auto made = [&] {
      if (!scaler) {
        return Gradients(sum.loss(), std::move(entries), std::move(report_of_all),
                         std::move(outputs));
      }
      return arena.execute([&] {
        return scaler->unscaled(sum.loss().clone(), std::move(entries), std::move(report_of_all),
                                std::move(outputs));
      });
    };
    Gradients gradients = made();
    gradients.set_counts(sum.counts());
    return gradients;
  }

  /// Whether one replica has the whole budget.
  bool has_share_alone() const {
    return strategy.run.memory_budget == unlimited || (cut.parts() == 1 && cut.sums == 0);
  }

  /// Devices divide the strategy's budget themselves, including gradient sums.
  bool has_devices() const { return strategy.parallelism == ParallelMode::model_parallel; }

  /// Makes replicas for the parts of a batch.
  void begin(BatchResults results, std::span<const Tensor> parameters,
             std::span<const Tensor> batch, int micro_batches) {
    const Bytes share_before = cut.options.memory_budget;
    cut = cut_batch(strategy, results, parameters, batch, micro_batches, threads);
    const Bytes share = cut.options.memory_budget;
    const auto count = static_cast<std::size_t>(cut.replicas);
    const bool may_change = strategy.mode == ExecutionMode::lazy || has_devices();
    if (replicas.size() != count || (share != share_before && !may_change)) {
      replicas.clear();
      known_to_fit.reset();
      for (int r = 0; r < cut.replicas; ++r) {
        replicas.emplace_back(strategy, cut.options, cut.replicas, cut.sums);
      }
    }
    for (Replica& replica : replicas) {
      replica.begin();
      replica.set_budget(share);
      replica.set_beside(cut.sums);
    }
  }

  /// Calls f(replica, r) for all replicas in parallel.
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
        with_threads([&] {
          tbb::parallel_for(std::size_t{0}, replicas.size(), run, tbb::simple_partitioner());
        });
      });
    }
    pass_on(errors);
  }

  /// Rethrows errors of replicas.
  void pass_on(std::span<const std::exception_ptr> errors) const {
    if (const std::optional<BudgetError> refused = refusal_of(errors)) throw *refused;
  }

  /// The refusal of a budget that is too small for some replica. It names a budget that is enough
  /// for all of them. Rethrows other errors.
  std::optional<BudgetError> refusal_of(std::span<const std::exception_ptr> errors) const {
    std::optional<BudgetError> worst;
    for (const std::exception_ptr& error : errors) {
      if (error == nullptr) continue;
      try {
        std::rethrow_exception(error);
      } catch (const BudgetError& refused) {
        worst = larger_of(worst, refused);
      }
    }
    if (!worst || has_share_alone() || has_devices()) return worst;
    return refusal_of_all(cut, strategy.run.memory_budget, *worst);
  }

  /// The report of all replicas together, plus `beside` bytes.
  Report take_report(Bytes beside) {
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
      sum.cached_bytes += other.cached_bytes;
      sum.tape_metadata += other.tape_metadata;
      sum.plan_cache += other.plan_cache;
      const bool is_limited = sum.budget != unlimited && other.budget != unlimited;
      sum.budget = is_limited ? sum.budget + other.budget : unlimited;
      add_counts(sum, other);
      sum.planning_seconds = std::max(sum.planning_seconds, other.planning_seconds);
      sum.run_seconds = std::max(sum.run_seconds, other.run_seconds);
    }
    if (sum.budget != unlimited) sum.budget += beside;
    for (Bytes* peak : {&sum.predicted_peak, &sum.measured_peak, &sum.predicted_live_peak,
                        &sum.measured_live_peak, &sum.keep_all_peak}) {
      *peak += beside;
    }
    sum.threads = threads;
    if (strategy.parallelism != ParallelMode::none) {
      sum.thread_problem = thread_problem(strategy.run.threads);
    }
    sum.replicas = static_cast<int>(replicas.size());
    sum.micro_batches = cut.micro_batches;
    if (strategy.run.memory_budget != unlimited) sum.budget = strategy.run.memory_budget;
    return sum;
  }

  ExecutionStrategy strategy;
  LossReduction reduction;
  BatchCounts counts;
  bool counts_first = false;  // the last batch had means over counted targets
  int threads;
  tbb::task_arena arena;
  InUse in_use{"Execution"};
  std::optional<LossScaler> scaler;
  std::mutex scaling;
  std::optional<Pipeline> pipeline;
  std::vector<Replica> replicas;
  BatchCut cut;
  /// A batch whose parts fit.
  struct Fit {
    std::uint64_t program;  ///< `hash_of_program` of the first part
    std::int64_t examples;
    Bytes budget;  ///< of a replica
    bool operator==(const Fit&) const = default;
  };
  std::optional<Fit> known_to_fit;
  Tape& counted_gradients() { return pipeline ? pipeline->gradient_count() : gradient_count; }
  Tape& counted_values() { return pipeline ? pipeline->value_count() : value_count; }

  // These tapes count how often gradients and values were computed, by how often they were cleared.
  // Replicas cannot count that, since they may be replaced.
  Tape gradient_count;
  Tape value_count;
  Report report;
};

Execution::Execution(ExecutionStrategy strategy, LossReduction reduction)
    : state_(std::make_unique<State>(std::move(strategy), reduction)) {}
Execution::~Execution() = default;
Execution::Execution(Execution&&) noexcept = default;
Execution& Execution::operator=(Execution&&) noexcept = default;

Gradients Execution::gradients(const ModelFunction& loss, std::span<const Tensor> parameters,
                               std::span<const Tensor> batch, Where where) {
  State& state = *state_;
  const InUse::Use use(state.in_use, call_in_progress, "Execution::gradients", &where);
  if (state.strategy.gradient == GradientMode::none) {
    throw ArgumentError(
        "execution", "the strategy has gradient = none; call value(), or choose another gradient",
        where);
  }
  if (state.pipeline) {
    const auto scale = [&](const Var& made) { return state.scaled(made); };
    const Gradients sum = state.pipeline->gradients(loss, parameters, batch, scale, where);
    return state.finish(sum, sum.report(), {sum.outputs().begin(), sum.outputs().end()});
  }
  const int micro_batches = state.strategy.accumulation;
  state.begin(BatchResults::gradients, parameters, batch, micro_batches);
  const CountedCall counted(state.gradient_count);
  const bool is_mean = state.reduction == LossReduction::mean;
  GradientAccumulator accumulator(
      {.steps = state.cut.parts(),
       .normalization = is_mean ? GradientNormalization::weighted : GradientNormalization::sum});
  // Memory of a replica's gradients that is still held counts when the replica runs its next
  // micro-batch. Where it computes while it records, it also counts in the next step.
  const bool may_take = micro_batches == 1 && state.strategy.mode == ExecutionMode::lazy;
  const int replicas = static_cast<int>(state.replicas.size());
  RecordedParts parts({loss, parameters, batch, where, state.cut.parts(), state.replicas,
                       state.gradient_count, state.counts,
                       [&](const Var& made) { return state.scaled(made); }});
  const std::vector<double> counts = state.prepare(parts);
  std::vector<std::optional<Gradients>> of_parts(state.replicas.size());
  PartOutputs outputs;
  for (int micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
    for (std::optional<Gradients>& done : of_parts) done.reset();
    const int first = micro_batch * replicas;
    state.for_replicas([&](Replica& replica, std::size_t r) {
      const int part = first + static_cast<int>(r);
      if (!parts.has(part)) parts.record(part);
      of_parts[r] = replica.differentiate(parts[part]);
    });
    for (int part = first; part < first + replicas; ++part) {
      require_same_updates(parts.updates(0), parts.updates(part));
    }
    if (state.cut.parts() == 1) {
      outputs.add({of_parts[0]->outputs().begin(), of_parts[0]->outputs().end()}, 1);
      break;
    }
    state.arena.execute([&] {
      for (int r = 0; r < replicas; ++r) {
        Gradients& made = *of_parts[static_cast<std::size_t>(r)];
        const std::int64_t examples = parts.examples(first + r);
        outputs.add(copies_of(made.outputs()), examples);
        if (may_take) {
          accumulator.step_taking(std::move(made), examples);
        } else {
          accumulator.step(made, examples);
        }
      }
    });
    // The sums are allocated now, so the free memory no longer includes their bytes.
    for (Replica& replica : state.replicas) replica.set_beside(0);
  }
  Gradients sum = state.cut.parts() == 1
                      ? std::move(*of_parts[0])
                      : state.arena.execute([&] { return accumulator.gradients(); });
  if (!counts.empty()) {
    sum.set_counts({state.counts.of_loss(counts), has_other_terms(parts[0].loss)});
  }
  std::vector<Tensor> together = outputs.finish(parts.updates(0));
  return state.finish(sum, state.take_report(state.cut.sums), std::move(together));
}

Tensor Execution::value(const ModelFunction& model, std::span<const Tensor> parameters,
                        std::span<const Tensor> batch, Where where) {
  State& state = *state_;
  const InUse::Use use(state.in_use, call_in_progress, "Execution::value", &where);
  if (state.pipeline) return state.pipeline->value(model, parameters, batch, state.report, where);
  state.begin(BatchResults::values, parameters, batch, 1);
  const CountedCall counted(state.value_count);
  std::vector<Tensor> made(state.replicas.size());
  state.for_replicas([&](Replica& replica, std::size_t r) {
    const int part = static_cast<int>(r);
    const std::vector<Tensor> tensors = part_of(batch, part, state.cut.parts());
    Tape& tape = replica.tape_for_values(part, state.value_count);
    made[r] = replica.evaluate(record_model(model, tape, parameters, tensors, where).loss);
  });
  state.report = state.take_report(0);
  return put_together(made);
}

const ExecutionStrategy& Execution::strategy() const { return state_->strategy; }
const Report& Execution::report() const { return state_->report; }

namespace {

constexpr std::string_view scaler_prefix = "scaler/";

/// The entries of the loss scaler. Throws `ArgumentError` for an entry that is of no part.
NamedTensors scaler_state_in(const StateEntries& entries, bool has_scaler) {
  return entries.part(scaler_prefix, has_scaler, {"gradient_calls", "value_calls"});
}

/// Throws unless a state fits an execution with this scaler.
void require_fits(const NamedTensors& state, const std::optional<LossScaler>& scaler) {
  const StateEntries entries(state, "execution");
  entries.short_count("gradient_calls");
  entries.short_count("value_calls");
  const NamedTensors of_scaler = scaler_state_in(entries, scaler.has_value());
  if (scaler) scaler->check_state(of_scaler);
}

}  // namespace

NamedTensors Execution::state() const {
  State& state = *state_;
  NamedTensors all{{"gradient_calls", integer_entry(state.counted_gradients().generation())},
                   {"value_calls", integer_entry(state.counted_values().generation())}};
  if (state.scaler) add_part(all, scaler_prefix, state.scaler->state());
  return all;
}

void Execution::check_state(const NamedTensors& state) const {
  state_->in_use.require(InUse::Level::alone, "Execution::check_state");
  require_fits(state, state_->scaler);
}

void Execution::load_state(const NamedTensors& state) {
  const InUse::Use use(state_->in_use, call_in_progress, "Execution::load_state");
  require_fits(state, state_->scaler);
  const StateEntries entries(state, "execution");
  if (state_->scaler) state_->scaler->load_state(scaler_state_in(entries, true));
  state_->counted_gradients().set_generation(entries.short_count("gradient_calls"));
  state_->counted_values().set_generation(entries.short_count("value_calls"));
}

}  // namespace palimpsest
