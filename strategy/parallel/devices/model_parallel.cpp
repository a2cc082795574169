#include "strategy/parallel/devices/model_parallel.h"

#include <algorithm>

#include "autodiff/usable_threads.h"
#include "strategy/base/free_memory.h"
#include "strategy/base/parameters.h"
#include "strategy/base/stopwatch.h"
#include "strategy/compile/form_choice.h"
#include "strategy/evaluators/computed_outputs.h"
#include "strategy/parallel/partition/pieces_evaluator.h"
#include "strategy/run/report_of.h"
#include "strategy/run/tape_reading.h"

namespace palimpsest {
namespace {

double overhead_of(const DevicePlan& plan) {
  const double once = plan.keep_all_work_seconds;
  return once > 0 ? std::max(plan.work_seconds / once - 1, 0.0) : 0;
}

/// Records a program to be cut. Checks that values that users' VJPs looked at are not left present.
void record(RecordedProgram& program, const LossAndOutputs& values, bool with_gradients) {
  Tape& tape = values.loss.tape();
  with_gradients ? record_loss(program, values) : record_value(program, values.loss);
  require_nothing_left(tape, "devices");
}

}  // namespace

ModelParallel::ModelParallel(const ExecutionStrategy& strategy)
    : strategy_(strategy),
      threads_(strategy.thread_count()),
      threads_of_device_(std::max(1, threads_ / static_cast<int>(strategy.devices.size()))),
      evaluator_(evaluator_for_pieces(strategy)),
      runner_(static_cast<int>(strategy.devices.size()), threads_, threads_of_device_) {}

ModelParallel::Known& ModelParallel::find_or_plan(const LossAndOutputs& values,
                                                  const LossAndOutputs& computed,
                                                  bool with_gradients) {
  require_nothing_computed(values.loss.tape(), "devices");
  require_nothing_computed(computed.loss.tape(), "devices");
  known_.remove_if([](const Known& known) { return !known.program.comes_again; });
  const auto same = std::ranges::find_if(known_, [&](const Known& known) {
    return known.with_gradients == with_gradients && is_recorded_again(known.program, computed);
  });
  if (same != known_.end()) {
    known_.splice(known_.begin(), known_, same);
  } else {
    // Micro-batches have random numbers of their own, so each needs its own program.
    const std::size_t most = static_cast<std::size_t>(strategy_.accumulation) + 8;
    std::list<Known> found(1);
    record(found.front().program, computed, with_gradients);
    found.front().with_gradients = with_gradients;
    known_.splice(known_.begin(), found);
    if (known_.size() > most) known_.pop_back();
  }
  Known& known = known_.front();
  RunOptions options = strategy_.run_options();
  if (!with_gradients) options.planner = nullptr;
  if (known.plan != nullptr && takes_free_memory(options) &&
      budget_of_free_memory(known.plan->predicted_peak, runner_.kept(),
                            [] { return free_memory(); })) {
    known.plan = nullptr;  // planned when more memory was free
  }
  known.reused = known.plan != nullptr;
  if (known.reused) return known;
  const Stopwatch planning;
  const DeviceRequest request{
      known.program,
      strategy_.devices,
      with_gradients ? strategy_.gradient : GradientMode::none,
      {std::move(options), threads_of_device_, strategy_.checkpoint_fraction.has_value(),
       strategy_.gradient == GradientMode::full},
      with_gradients && strategy_.accumulation > 1,
      runner_.kept(),
      threads_};
  known.plan = std::make_shared<const DevicePlan>(plan_devices(request, programs_));
  known.planning_seconds = planning.seconds();
  return known;
}

Report ModelParallel::run(const Known& known, const Tape& tape, const DeviceOutputs& outputs,
                          const Meter& meter) {
  const DevicePlan& plan = *known.plan;
  const Stopwatch running;
  Report report = runner_.run(known.plan, tape, tape.generation() - known.program.tape.generation(),
                              outputs, strategy_.run);
  report.run_seconds = running.seconds();
  report.planning_seconds = known.reused ? 0 : known.planning_seconds;
  report.plan_reused = known.reused;
  report.planner = "devices";
  report.kernel_level = kernel_level();
  report.threads = threads_;
  report.thread_problem = thread_problem(strategy_.run.threads);
  report.precision = evaluator_->precision();
  report.budget = plan.budget;
  report.keep_all_peak = plan.keep_all_peak;
  report.predicted_peak = report.predicted_live_peak = plan.predicted_peak;
  report.measured_peak += meter.peak_reserved();
  report.measured_live_peak = report.measured_peak;
  report.compute_overhead = overhead_of(plan);
  report.tape_metadata = tape.metadata_bytes();
  report.plan_cache = programs_.bytes();
  if (strategy_.run.profile) report.resident = resident_size();
  return report;
}

Gradients ModelParallel::gradients(const LossAndOutputs& values) {
  const InUse::Use use_of_recorded(values.loss.tape().in_use(), tape_use::asking, "devices");
  const LossAndOutputs computed = computed_for(*evaluator_, values);
  const InUse::Use use(computed.loss.tape().in_use(), tape_use::asking, "devices");
  const Known& known = find_or_plan(values, computed, true);
  const Meter meter;
  const Tensor made = new_tensor(meter, computed.loss.type());
  DeviceOutputs outputs{made.raw(), {}, {}};
  std::vector<Gradients::Entry> entries;
  const std::vector<Var> leaves = parameters_of(values.loss.tape());
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    entries.push_back(
        {leaves[i], new_tensor(meter, known.program.tape.type(known.program.gradients[i]))});
    outputs.gradients.push_back(entries.back().gradient.raw());
  }
  std::vector<Tensor> tensors;
  for (const Var& output : computed.outputs) {
    tensors.push_back(new_tensor(meter, output.type()));
    outputs.outputs.push_back(tensors.back().raw());
  }
  const InUse::Use run_of_recorded(values.loss.tape().in_use(), tape_use::computing, "devices");
  const InUse::Use run_of_computed(computed.loss.tape().in_use(), tape_use::computing, "devices");
  Report report = run(known, computed.loss.tape(), outputs, meter);
  return Gradients(made, std::move(entries), std::move(report), std::move(tensors));
}

Tensor ModelParallel::value(const Var& value, Report& report) {
  const InUse::Use use_of_recorded(value.tape().in_use(), tape_use::asking, "devices");
  const Var computed = evaluator_->computed_for(value.tape(), {&value, 1})[0];
  const InUse::Use use(computed.tape().in_use(), tape_use::asking, "devices");
  const Known& known = find_or_plan(value, computed, false);
  const Meter meter;
  Tensor made = new_tensor(meter, computed.type());
  const InUse::Use run_of_recorded(value.tape().in_use(), tape_use::computing, "devices");
  const InUse::Use run_of_computed(computed.tape().in_use(), tape_use::computing, "devices");
  report = run(known, computed.tape(), {made.raw(), {}, {}}, meter);
  return made;
}

PiecesForecast ModelParallel::forecast(const LossAndOutputs& values, bool with_gradients) {
  const LossAndOutputs computed = computed_for(*evaluator_, values);
  const DevicePlan& plan = *find_or_plan(values, computed, with_gradients).plan;
  return {plan.predicted_peak, plan.keep_all_peak, plan.seconds, overhead_of(plan)};
}

}  // namespace palimpsest
