#include "strategy/choice/estimate.h"

#include <algorithm>

#include "strategy/execution/batch_cut.h"
#include "strategy/execution/batch_parts.h"
#include "strategy/execution/record_model.h"
#include "strategy/execution/replica.h"
#include "strategy/forms.h"
#include "strategy/pipeline/pipeline.h"
#include "strategy/precision/loss_scaler.h"

namespace palimpsest {
namespace {

/// A strategy that is planned in place of one that computes while it records.
ExecutionStrategy planned_like(ExecutionStrategy strategy) {
  if (strategy.mode == ExecutionMode::lazy) return strategy;
  if (strategy.mode == ExecutionMode::eager) {
    strategy.fusion = false;
    if (strategy.memory_budget == unlimited) strategy.gradient = GradientMode::full;
  }
  strategy.mode = ExecutionMode::lazy;
  strategy.stage = {};
  return strategy;
}

/// Of the largest part of the batch.
Forecast forecast_part(const ExecutionStrategy& strategy, const BatchCut& cut,
                       const Workload& workload, const Rates& rates) {
  Replica replica(strategy, cut.options, cut.replicas);
  const std::vector<Tensor> part =
      cut.parts() > 1 ? part_of(workload.batch, 0, cut.parts()) : workload.batch;
  const Tape count;
  if (!workload.training) {
    Tape& tape = replica.tape_for_values(0, count);
    const Var value = record_model(workload.model, tape, workload.parameters, part);
    if (cut.replicas > 1 && value.shape().rank() == 0) {
      throw ArgumentError(
          "[estimate] values of replicas are put together along their first axis, and this one has "
          "none; give a strategy without replicas, or a model whose value has its examples there");
    }
    return replica.forecast_value(value, rates);
  }
  const Var loss =
      record_model(workload.model, replica.tape(0, 0, count), workload.parameters, part);
  if (cut.parts() > 1) require_all_given(loss.tape(), workload.parameters);
  const bool is_scaled = strategy.precision && strategy.precision->needs_scaling();
  return replica.forecast(is_scaled ? LossScaler().scale(loss) : loss, rates);
}

Estimate estimate_of(const Forecast& forecast) {
  return {.peak = forecast.peak,
          .keep_all_peak = std::max(forecast.plan.keep_all_peak, forecast.plan.predicted_peak()),
          .seconds = forecast.seconds,
          .compute_overhead = forecast.plan.compute_overhead()};
}

/// Stages are planned by the machine that planners go by; how much longer work takes by the rates
/// given is found on a micro-batch in one piece.
Estimate estimate_pipeline(const ExecutionStrategy& strategy, const Workload& workload,
                           const Rates& rates) {
  Pipeline pipeline(strategy, LossReduction::mean);
  const bool is_scaled =
      workload.training && strategy.precision && strategy.precision->needs_scaling();
  const auto scale = [&](const Var& loss) { return is_scaled ? LossScaler().scale(loss) : loss; };
  const PipelineForecast forecast = pipeline.forecast(workload.model, workload.parameters,
                                                      workload.batch, scale, workload.training);
  ExecutionStrategy alone{.precision = strategy.precision, .parallelism = ParallelMode::none};
  alone.gradient = workload.training ? GradientMode::full : GradientMode::none;
  BatchCut cut = cut_batch(alone, workload.parameters, workload.batch, strategy.accumulation, 1);
  const double by_rates = forecast_part(alone, cut, workload, rates).seconds;
  const double by_default = forecast_part(alone, cut, workload, {.machine = {}}).seconds;
  return {.peak = forecast.peak,
          .keep_all_peak = forecast.keep_all_peak,
          .seconds = forecast.seconds * by_rates / by_default,
          .compute_overhead = forecast.compute_overhead,
          .micro_batches = strategy.accumulation};
}

}  // namespace

Estimate estimate(const ExecutionStrategy& strategy, const Workload& workload, const Rates& rates) {
  require_valid(strategy);
  if (workload.training && strategy.gradient == GradientMode::none) {
    throw ArgumentError(
        "[estimate] the strategy has gradient = none, and the workload trains; give it another "
        "gradient, or the workload training = false");
  }
  if (strategy.parallelism == ParallelMode::pipeline) {
    return estimate_pipeline(strategy, workload, rates);
  }
  const ExecutionStrategy planned = planned_like(strategy);
  const int threads = planned.thread_count();
  const BatchCut cut = cut_batch(planned, workload.parameters, workload.batch,
                                 workload.training ? planned.accumulation : 1, threads);
  Estimate made;
  try {
    made = estimate_of(forecast_part(planned, cut, workload, rates));
  } catch (const BudgetError& error) {
    if (cut.parts() == 1 || strategy.memory_budget == unlimited) throw;
    throw refusal_of_all(cut, strategy.memory_budget, error);
  }
  const int in_turns = (cut.replicas + threads - 1) / threads;
  // Each part is read and the sum read and written.
  const double sum_seconds =
      3 * static_cast<double>(cut.sums) / rates.machine.bytes_per_second * cut.parts();
  for (Bytes* const peak : {&made.peak, &made.keep_all_peak}) {
    *peak = *peak * cut.replicas + cut.sums;
  }
  made.seconds = made.seconds * cut.micro_batches * in_turns + sum_seconds;
  made.replicas = cut.replicas;
  made.micro_batches = cut.micro_batches;
  made.is_planned =
      strategy.mode == ExecutionMode::lazy && strategy.memory != MemoryHandling::cached;
  return made;
}

Estimate estimate(const ExecutionStrategy& strategy, const Graph& graph, const Rates& rates) {
  require_valid(strategy);
  if (strategy.parallelism == ParallelMode::pipeline || strategy.precision ||
      strategy.accumulation > 1 || strategy.replicas() > 1) {
    throw ArgumentError(
        "[estimate] a graph has its precision and its batch; ask of a workload what a strategy "
        "takes that changes or cuts them");
  }
  const ExecutionStrategy planned = planned_like(strategy);
  const RunOptions options = planned.run_options();
  const auto forecast = [&](const Planner& planner, Bytes budget) {
    Plan plan = make_plan(graph, planner, budget);
    const double seconds = seconds_of_run(graph, plan, planned.thread_count(), rates.machine, true);
    const Bytes peak = plan.predicted_peak();
    return estimate_of({std::move(plan), peak, seconds});
  };
  Estimate made;
  try {
    made = forecast(*planner_of(options), options.memory_budget);
  } catch (const BudgetError& error) {
    if (!planned.checkpoint_fraction) throw;
    made = forecast(*planner_of({}), std::min(error.smallest_feasible(), options.memory_budget));
  }
  made.is_planned =
      strategy.mode == ExecutionMode::lazy && (strategy.memory == MemoryHandling::minimal_peak ||
                                               strategy.memory == MemoryHandling::standard);
  return made;
}

}  // namespace palimpsest
