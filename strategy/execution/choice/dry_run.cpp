#include "strategy/execution/choice/dry_run.h"

#include <algorithm>

#include "checkpoint/planners.h"
#include "strategy/execution/choice/dry_engine.h"
#include "strategy/execution/choice/record_again.h"

namespace palimpsest {
namespace {

struct PlannedRun {
  Forecast rest;  ///< of the run after everything is recorded
  Bytes peak;
  double seconds;
  double cost;  ///< seconds on one thread, by the planners' machine
};

PlannedRun run_again(const LossAndOutputs& made, const ExecutionStrategy& strategy,
                     const RunOptions& options, const BatchCut& cut, bool training,
                     const Rates& rates) {
  const auto engine = std::make_shared<DryEngine>(rates);
  Replica replica(strategy, options, cut.replicas, cut.sums, engine);
  const Tape count;
  Tape& tape = replica.tape(0, 0, count);
  record_again(made.loss.tape(), tape);
  LossAndOutputs again(tape.var(made.loss.id()));
  for (const Var& output : made.outputs) again.outputs.push_back(tape.var(output.id()));
  PlannedRun run{
      training ? replica.forecast(again, rates) : replica.forecast_value(again.loss, rates),
      engine->peak(), engine->seconds(), engine->cost()};
  run.peak = std::max(run.peak, run.rest.peak);
  run.seconds += run.rest.seconds;
  run.cost += run.rest.plan.simulation.cost;
  return run;
}

}  // namespace

DryRun run_dry(const ExecutionStrategy& strategy, const BatchCut& cut, int part,
               const LocatedWorkload& workload, const Rates& rates) {
  ExecutionStrategy lazy = strategy;
  lazy.mode = ExecutionMode::lazy;
  lazy.stage = {};
  Replica recorder(lazy, cut.options, cut.replicas, cut.sums);
  CountedMeans means;
  const LossAndOutputs made =
      recorder.computed(record_part(recorder, strategy, cut, part, workload, means));

  // The result already has its precision.
  ExecutionStrategy dry = strategy;
  dry.precision.reset();
  const PlannedRun run = run_again(made, dry, cut.options, cut, workload.training, rates);

  // Everything computed once. A hybrid mode counts as lazy here, since it recomputes stages.
  if (dry.mode == ExecutionMode::hybrid) dry = lazy;
  dry.precision.reset();
  RunOptions once = cut.options;
  once.memory_budget = unlimited;
  once.planner = keep_all();
  const PlannedRun least = run_again(made, dry, once, cut, workload.training, rates);
  return {run.peak, std::max(run.peak, run.rest.plan.keep_all_peak), run.seconds,
          least.cost > 0 ? std::max(0.0, run.cost / least.cost - 1) : 0};
}

}  // namespace palimpsest
