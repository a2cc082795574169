#include "strategy/execution/choice/estimate.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "autodiff/require_function.h"
#include "strategy/base/batch_parts.h"
#include "strategy/base/loss_counts.h"
#include "strategy/base/updates.h"
#include "strategy/compile/form_choice.h"
#include "strategy/execution/choice/dry_run.h"
#include "strategy/parallel/devices/model_parallel.h"
#include "strategy/parallel/pipeline/pipeline.h"
#include "strategy/training/loss_scaler.h"

namespace palimpsest {
namespace {

Estimate estimate_of(const Forecast& forecast) {
  return {.peak = forecast.peak,
          .keep_all_peak = std::max(forecast.plan.keep_all_peak, forecast.plan.predicted_peak()),
          .seconds = forecast.seconds,
          .compute_overhead = forecast.plan.compute_overhead(),
          .is_planned = forecast.first_peak == forecast.peak};
}

Estimate estimate_part(const ExecutionStrategy& strategy, const BatchCut& cut, int part,
                       const LocatedWorkload& workload, const Rates& rates,
                       std::optional<BudgetError>& of_counting) {
  if (strategy.mode == ExecutionMode::lazy) {
    return estimate_of(forecast_part(strategy, cut, part, workload, rates, of_counting));
  }
  const DryRun run = run_dry(strategy, cut, part, workload, rates);
  return {run.peak, run.keep_all_peak, run.seconds, run.compute_overhead};
}

BatchResults results_of(const LocatedWorkload& workload) {
  return workload.training ? BatchResults::gradients : BatchResults::values;
}

/// The number of parts that are larger by one example than the others; 0 where all are equal.
int larger_parts(const BatchCut& cut, const LocatedWorkload& workload) {
  if (cut.parts() == 1) return 0;
  return static_cast<int>(examples_of(workload.batch) % cut.parts());
}

/// The first part of each size: the first of all, which is as large as any, and perhaps the last.
std::vector<int> parts_of_each_size(const BatchCut& cut, const LocatedWorkload& workload) {
  std::vector<int> parts{0};
  if (larger_parts(cut, workload) > 0) parts.push_back(cut.parts() - 1);
  return parts;
}

/// Calls `estimate(part)` for a part of each size. Throws the `BudgetError` that names most.
template <class F>
auto for_each_size(const BatchCut& cut, const LocatedWorkload& workload, F estimate) {
  std::vector<decltype(estimate(0))> made;
  std::optional<BudgetError> worst;
  for (const int part : parts_of_each_size(cut, workload)) {
    try {
      made.push_back(estimate(part));
    } catch (const BudgetError& refused) {
      worst = larger_of(worst, refused);
    }
  }
  if (worst) throw *worst;
  return made;
}

/// The sum over replicas of the largest peak of their parts.
Bytes peak_of_replicas(const BatchCut& cut, int larger, Bytes of_larger, Bytes of_smaller) {
  Bytes sum = 0;
  for (int r = 0; r < cut.replicas; ++r) {
    const bool has_larger = larger == 0 || r < larger;
    const bool has_smaller = larger > 0 && cut.parts() - cut.replicas + r >= larger;
    sum += std::max(has_larger ? of_larger : 0, has_smaller ? of_smaller : 0);
  }
  return sum;
}

/// Reads each part's gradients, and reads and writes their sum.
double seconds_of_sums(const BatchCut& cut, const Rates& rates) {
  return 3 * static_cast<double>(cut.sums) / rates.machine.bytes_per_second * cut.parts();
}

/// The time of a whole micro-batch by the given rates, relative to its time by the planners'
/// machine.
double by_rates(const ExecutionStrategy& strategy, const LocatedWorkload& workload,
                int micro_batches, const Rates& rates) {
  ExecutionStrategy alone{.precision = strategy.precision, .parallelism = ParallelMode::none};
  alone.gradient = workload.training ? GradientMode::full : GradientMode::none;
  alone.run.fuse = strategy.run.fuse;
  const BatchCut cut =
      cut_batch(alone, results_of(workload), workload.parameters, workload.batch, micro_batches, 1);
  std::optional<BudgetError> refused;  // none, without a budget
  return forecast_part(alone, cut, 0, workload, rates, refused).seconds /
         forecast_part(alone, cut, 0, workload, {.machine = {}}, refused).seconds;
}

/// Scales the planned time by `by_rates`, since stages are planned by the planners' machine.
Estimate estimate_pipeline(const ExecutionStrategy& strategy, const LocatedWorkload& workload,
                           const Rates& rates) {
  Pipeline pipeline(strategy, LossReduction::mean);
  const bool is_scaled =
      workload.training && strategy.precision && strategy.precision->needs_scaling();
  const auto scale = [&](const Var& loss) {
    return is_scaled ? LossScaler().scale(loss, workload.where) : loss;
  };
  const PiecesForecast forecast =
      pipeline.forecast(workload.model, workload.parameters, workload.batch, scale,
                        workload.training, workload.where);
  const ExecutionStrategy usual{.gradient = workload.training ? GradientMode::automatic
                                                              : GradientMode::none};
  const BatchCut cut = cut_batch(usual, results_of(workload), workload.parameters, workload.batch,
                                 strategy.accumulation, 1);
  return {
      .peak = forecast.peak,
      .keep_all_peak = forecast.keep_all_peak,
      .seconds = forecast.seconds * by_rates(strategy, workload, strategy.accumulation, rates) +
                 seconds_of_sums(cut, rates) / std::min(strategy.stages, strategy.thread_count()),
      .compute_overhead = forecast.compute_overhead,
      .micro_batches = strategy.accumulation};
}

/// Likewise for devices.
Estimate estimate_devices(const ExecutionStrategy& strategy, const LocatedWorkload& workload,
                          const Rates& rates) {
  const int parts = workload.training ? strategy.accumulation : 1;
  const BatchCut cut = cut_batch(strategy, results_of(workload), workload.parameters,
                                 workload.batch, parts, strategy.thread_count());
  ModelParallel devices(strategy);
  const bool is_scaled =
      workload.training && strategy.precision && strategy.precision->needs_scaling();
  BatchCounts counts(strategy);
  std::optional<BudgetError> of_counting;
  const auto forecast_of = [&](int part) {
    const std::vector<Tensor> batch =
        parts > 1 ? part_of(workload.batch, part, parts) : workload.batch;
    Tape tape(devices.evaluator());
    counts.begin(1);
    LossAndOutputs recorded = record_loss_of_part(tape, parts, batch, workload, counts.of(0));
    if (is_scaled) recorded.loss = LossScaler().scale(recorded.loss, workload.where);
    if (workload.training) {
      append_updates(recorded);
      counts.note_needs(0, recorded);
      of_counting = larger_of(of_counting, counts.refusal());
      RecordedCounts(recorded.loss).append_to(recorded);
    }
    return devices.forecast(recorded, workload.training);
  };
  std::vector<PiecesForecast> of_sizes;
  std::optional<BudgetError> of_parts;
  try {
    of_sizes = for_each_size(cut, workload, forecast_of);
  } catch (const BudgetError& refused) {
    of_parts = refused;
  }
  throw_larger(of_parts, of_counting);
  PiecesForecast forecast = of_sizes.front();
  forecast.peak = std::max(forecast.peak, of_sizes.back().peak);
  forecast.keep_all_peak = std::max(forecast.keep_all_peak, of_sizes.back().keep_all_peak);
  return {.peak = forecast.peak + cut.sums,
          .keep_all_peak = forecast.keep_all_peak + cut.sums,
          .seconds = forecast.seconds * parts * by_rates(strategy, workload, parts, rates) +
                     seconds_of_sums(cut, rates),
          .compute_overhead = forecast.compute_overhead,
          .micro_batches = parts};
}

}  // namespace

Estimate estimate(const ExecutionStrategy& strategy, const Workload& given, const Rates& rates,
                  Where where) {
  require_valid(strategy);
  detail::require_function(given.model, "estimate", "the model of the workload", "records a loss",
                           where);
  const LocatedWorkload workload{given, where};
  if (workload.training && strategy.gradient == GradientMode::none) {
    throw ArgumentError("estimate",
                        "the strategy has gradient = none, but the workload trains; choose another "
                        "gradient, or set training = false in the workload",
                        where);
  }
  if (strategy.parallelism == ParallelMode::pipeline) {
    return estimate_pipeline(strategy, workload, rates);
  }
  if (strategy.parallelism == ParallelMode::model_parallel) {
    return estimate_devices(strategy, workload, rates);
  }
  const int threads = strategy.thread_count();
  const BatchCut cut =
      cut_batch(strategy, results_of(workload), workload.parameters, workload.batch,
                workload.training ? strategy.accumulation : 1, threads);
  std::vector<Estimate> of_sizes;
  std::optional<BudgetError> of_parts;
  std::optional<BudgetError> of_counting;
  try {
    of_sizes = for_each_size(cut, workload, [&](int part) {
      return estimate_part(strategy, cut, part, workload, rates, of_counting);
    });
  } catch (const BudgetError& error) {
    const bool has_share_alone = cut.parts() == 1 && cut.sums == 0;
    const bool is_of_all = has_share_alone || strategy.run.memory_budget == unlimited;
    of_parts = is_of_all ? error : refusal_of_all(cut, strategy.run.memory_budget, error);
  }
  throw_larger(of_parts, of_counting);
  Estimate made = of_sizes.front();
  const int larger = larger_parts(cut, workload);
  for (Bytes Estimate::* const peak : {&Estimate::peak, &Estimate::keep_all_peak}) {
    made.*peak = peak_of_replicas(cut, larger, of_sizes.front().*peak, of_sizes.back().*peak);
    if (workload.training) made.*peak += cut.sums;
  }
  const int in_turns = (cut.replicas + threads - 1) / threads;
  made.seconds *= cut.micro_batches * in_turns;
  if (workload.training) made.seconds += seconds_of_sums(cut, rates);
  made.replicas = cut.replicas;
  made.micro_batches = cut.micro_batches;
  made.is_planned = of_sizes.front().is_planned && of_sizes.back().is_planned &&
                    strategy.mode == ExecutionMode::lazy &&
                    strategy.run.memory != AllocationPolicy::cached;
  return made;
}

Estimate estimate(const ExecutionStrategy& strategy, const Graph& graph, const Rates& rates) {
  require_valid(strategy);
  if (strategy.parallelism == ParallelMode::pipeline ||
      strategy.parallelism == ParallelMode::model_parallel || strategy.precision ||
      strategy.accumulation > 1 || strategy.replicas() > 1) {
    throw ArgumentError(
        "[estimate] a graph has a fixed precision and batch; give a workload to estimate a "
        "strategy that changes the precision or cuts the batch");
  }
  ExecutionStrategy planned = strategy;
  planned.mode = ExecutionMode::lazy;
  planned.stage = {};
  if (strategy.mode == ExecutionMode::eager && strategy.run.memory_budget == unlimited) {
    planned.gradient = GradientMode::full;
  }
  const RunOptions options = planned.run_options();
  const auto forecast = [&](const Planner& planner, Bytes budget) {
    Plan plan = make_plan(graph, planner, budget);
    const double seconds = seconds_of_run(graph, plan, planned.thread_count(), rates.machine, true);
    const Bytes peak = plan.predicted_peak();
    return estimate_of({std::move(plan), peak, seconds, peak});
  };
  Estimate made;
  try {
    made = forecast(*planner_of(options), options.memory_budget);
  } catch (const BudgetError& error) {
    if (!planned.checkpoint_fraction) throw;
    made = forecast(*planner_of({}), std::min(error.smallest_feasible(), options.memory_budget));
  }
  made.is_planned = strategy.mode == ExecutionMode::lazy &&
                    (strategy.run.memory == AllocationPolicy::minimal_peak ||
                     strategy.run.memory == AllocationPolicy::standard);
  return made;
}

}  // namespace palimpsest
