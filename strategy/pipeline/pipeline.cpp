#include "strategy/pipeline/pipeline.h"

#include <algorithm>
#include <string>

#include "strategy/execution/batch_parts.h"
#include "strategy/execution/record_model.h"
#include "strategy/gradient_sums.h"
#include "strategy/parameters.h"
#include "strategy/pieces/pieces_evaluator.h"
#include "strategy/report_of.h"
#include "strategy/stopwatch.h"

namespace palimpsest {
namespace {

/// What sums of gradients are divided by, and what a micro-batch's are multiplied by, as
/// `GradientAccumulator` does for parts of a batch.
struct Weights {
  std::vector<double> of_parts;
  double divisor = 1;

  Weights(std::span<const std::int64_t> examples, LossReduction reduction)
      : of_parts(examples.size(), 1) {
    if (reduction == LossReduction::sum) return;
    const auto first = static_cast<double>(examples[0]);
    std::int64_t all = 0;
    for (std::size_t m = 0; m < examples.size(); ++m) {
      if (m > 0) of_parts[m] = static_cast<double>(examples[m]) / first;
      all += examples[m];
    }
    divisor = static_cast<double>(all) / first;
  }
};

/// Of the longest chain of tasks that wait for each other, or of all work shared evenly by threads
/// where that is more.
double seconds_of(const PipelinePlan& plan, const PipelineOrder& order, int threads,
                  int threads_of_stage) {
  const auto tasks = order.tasks();
  std::vector<std::uint32_t> waits_for(tasks.size());
  std::vector<std::uint32_t> ready;
  for (std::uint32_t t = 0; t < tasks.size(); ++t) {
    waits_for[t] = order.edges().predecessor_count(t);
    if (waits_for[t] == 0) ready.push_back(t);
  }
  std::vector<double> start(tasks.size());
  double longest = 0;
  double all = 0;
  while (!ready.empty()) {
    const std::uint32_t t = ready.back();
    ready.pop_back();
    const std::vector<PlacedPiece>& pieces = plan.programs[0];
    const auto forward = static_cast<std::size_t>(tasks[t].stage);
    const PlacedPiece& placed =
        pieces[tasks[t].what.backward ? pieces.size() - 1 - forward : forward];
    const double alone = placed.program != nullptr ? placed.program->seconds() : 0;
    const double end = start[t] + alone / threads_of_stage;
    all += alone;
    longest = std::max(longest, end);
    for (const std::uint32_t next : order.edges().successors(t)) {
      start[next] = std::max(start[next], end);
      if (--waits_for[next] == 0) ready.push_back(next);
    }
  }
  return std::max(longest, all / threads);
}

Tensor make(const Meter& meter, const ValueType& type) {
  return Tensor(meter.allocate(type.bytes()), type.shape, type.dtype);
}

}  // namespace

Pipeline::Pipeline(const ExecutionStrategy& strategy, LossReduction reduction)
    : strategy_(strategy),
      reduction_(reduction),
      threads_(strategy.thread_count()),
      threads_of_stage_(std::max(1, threads_ / strategy.stages)),
      evaluator_(evaluator_for_pieces(strategy)),
      runner_(strategy.stages, threads_, threads_of_stage_) {}

Tape& Pipeline::cleared(Flow& flow, int part) const {
  const auto index = static_cast<std::size_t>(part);
  if (flow.tapes.size() <= index) flow.tapes.resize(index + 1);
  std::unique_ptr<Tape>& tape = flow.tapes[index];
  if (tape == nullptr) tape = std::make_unique<Tape>(evaluator_);
  tape->clear();
  tape->accompany(flow.count);
  tape->set_seed(flow.count.seed() + static_cast<std::uint64_t>(part));
  return *tape;
}

void Pipeline::record(Flow& flow, const ModelFunction& model, std::span<const Tensor> parameters,
                      std::span<const Tensor> batch, const Scale& scale, bool with_gradients) {
  const int parts = strategy_.accumulation;
  flow.outcomes.clear();
  flow.examples.clear();
  if (parts > 1) examples_of(batch);  // throws
  flow.count.clear();
  for (int m = 0; m < parts; ++m) {
    const std::vector<Tensor> tensors = part_of(batch, m, parts);
    flow.examples.push_back(parts > 1 ? examples_of(tensors) : 1);
    Tape& tape = cleared(flow, m);
    const Var made = record_model(model, tape, parameters, tensors);
    if (parts > 1 && with_gradients) require_all_given(tape, parameters);
    const Var outcome = scale(made);
    require_nothing_computed(tape, "pipeline");
    const Var computed = evaluator_->computed_for(tape, {&outcome, 1})[0];
    require_nothing_computed(computed.tape(), "pipeline");
    flow.outcomes.push_back(computed);
  }
}

void Pipeline::find_programs(Flow& flow, bool with_gradients) {
  std::vector<std::shared_ptr<CutProgram>> found;
  flow.program_of.clear();
  bool all_known = true;
  for (const Var& outcome : flow.outcomes) {
    const auto is_same = [&](const auto& program) { return is_recorded_again(*program, outcome); };
    auto same = std::ranges::find_if(found, is_same);
    if (same == found.end()) {
      const auto known = std::ranges::find_if(flow.programs, is_same);
      if (known != flow.programs.end()) {
        found.push_back(*known);
      } else {
        all_known = false;
        found.push_back(with_gradients ? cut_loss(outcome, strategy_.stages)
                                       : cut_value(outcome, strategy_.stages));
      }
      same = std::prev(found.end());
    }
    flow.program_of.push_back(static_cast<std::size_t>(same - found.begin()));
  }
  const bool same_programs = all_known && found == flow.programs;
  flow.plan_reused = same_programs && flow.plan != nullptr;
  if (!flow.plan_reused) flow.plan = nullptr;
  flow.programs = std::move(found);
}

void Pipeline::plan(Flow& flow, bool with_gradients) {
  if (flow.order == nullptr) {
    flow.order = std::make_unique<PipelineOrder>(
        with_gradients ? one_forward_one_backward(strategy_.stages, strategy_.accumulation)
                       : forward_only(strategy_.stages, strategy_.accumulation));
  }
  if (flow.plan_reused) return;
  Bytes outcomes = 0;
  for (const Var& outcome : flow.outcomes) outcomes += outcome.type().bytes();
  // Values are put together once more.
  if (!with_gradients && flow.outcomes.size() > 1) outcomes *= 2;
  std::vector<const CutProgram*> programs;
  for (const auto& program : flow.programs) programs.push_back(program.get());
  RunOptions options = strategy_.run_options();
  if (!with_gradients) options.planner = nullptr;
  const PipelineRequest request{
      programs,
      *flow.order,
      with_gradients ? strategy_.gradient : GradientMode::none,
      {std::move(options), threads_of_stage_, strategy_.checkpoint_fraction.has_value()},
      with_gradients && strategy_.accumulation > 1,
      outcomes,
      runner_.kept()};
  flow.plan = std::make_shared<const PipelinePlan>(plan_pipeline(request, programs_));
}

Pipeline::Flow& Pipeline::prepare(const ModelFunction& model, std::span<const Tensor> parameters,
                                  std::span<const Tensor> batch, const Scale& scale,
                                  bool with_gradients) {
  Flow& flow = with_gradients ? gradients_ : values_;
  record(flow, model, parameters, batch, scale, with_gradients);
  const Stopwatch planning;
  find_programs(flow, with_gradients);
  plan(flow, with_gradients);
  flow.planning_seconds = planning.seconds();
  return flow;
}

PiecesForecast Pipeline::forecast(const ModelFunction& model, std::span<const Tensor> parameters,
                                  std::span<const Tensor> batch, const Scale& scale,
                                  bool with_gradients) {
  const Flow& flow = prepare(model, parameters, batch, scale, with_gradients);
  const PipelinePlan& plan = *flow.plan;
  return {plan.predicted_peak, std::max(plan.keep_all_peak, plan.predicted_peak),
          seconds_of(plan, *flow.order, threads_, threads_of_stage_),
          plan.seconds / plan.keep_all_seconds - 1};
}

std::vector<MicroBatch> Pipeline::micro_batches(const Flow& flow) const {
  std::vector<MicroBatch> batches;
  for (std::size_t m = 0; m < flow.outcomes.size(); ++m) {
    const std::size_t program = flow.program_of[m];
    const Tape& tape = flow.outcomes[m].tape();
    const std::uint32_t round = tape.generation() - flow.programs[program]->tape.generation();
    batches.push_back({program, &tape, round, nullptr, {}});
  }
  return batches;
}

Report Pipeline::run(const Flow& flow, std::span<const MicroBatch> batches,
                     const PipelineRunner::TakeGradient& take) {
  const Stopwatch running;
  Report report = runner_.run(flow.plan, *flow.order, batches, take);
  report.run_seconds = running.seconds();
  report.planning_seconds = flow.planning_seconds;
  report.planner = "pipeline";
  report.kernel_level = kernel_level();
  report.threads = threads_;
  report.precision = evaluator_->precision();
  report.micro_batches = strategy_.accumulation;
  report.budget = flow.plan->budget;
  report.keep_all_peak = flow.plan->keep_all_peak;
  report.predicted_peak = flow.plan->predicted_peak;
  report.plan_reused = flow.plan_reused;
  report.compute_overhead = flow.plan->seconds / flow.plan->keep_all_seconds - 1;
  for (const Var& outcome : flow.outcomes) report.tape_metadata += outcome.tape().metadata_bytes();
  if (strategy_.profiling) report.resident = resident_size();
  return report;
}

Gradients Pipeline::gradients(const ModelFunction& loss, std::span<const Tensor> parameters,
                              std::span<const Tensor> batch, const Scale& scale) {
  const Flow& flow = prepare(loss, parameters, batch, scale, true);
  const ValueType loss_type = flow.outcomes[0].type();
  const std::size_t parts = flow.outcomes.size();

  std::vector<Tensor> losses;
  for (std::size_t m = 0; m < parts; ++m) losses.push_back(make(runner_.meter(), loss_type));
  std::vector<ValueType> types;
  for (const ValueId gradient : flow.programs[0]->gradients) {
    types.push_back(flow.programs[0]->tape.type(gradient));
  }
  std::vector<Tensor> sums;
  for (const ValueType& type : types) {
    const DType dtype = parts > 1 ? compute_dtype(type.dtype) : type.dtype;
    sums.push_back(make(runner_.meter(), {type.shape, dtype}));
  }
  std::vector<MicroBatch> batches = micro_batches(flow);
  for (std::size_t m = 0; m < parts; ++m) batches[m].outcome = losses[m].raw();
  if (parts == 1) {
    for (const Tensor& sum : sums) batches[0].gradients.push_back(sum.raw());
  }
  const Weights weights(flow.examples, reduction_);
  const auto add = [&](int m, std::size_t i, std::byte* data) {
    const Tensor gradient(Buffer(Buffer(), data), types[i].shape, types[i].dtype);
    if (m == 0) {
      begin_sum(sums[i], gradient);
    } else {
      add_to_sum(sums[i], gradient, weights.of_parts[static_cast<std::size_t>(m)]);
    }
  };
  Report report = run(flow, batches, add);

  std::vector<Gradients::Entry> entries;
  const std::vector<Var> leaves = parameters_of(*flow.tapes.back());
  Tensor mean = losses[0];
  runner_.execute([&] {
    for (std::size_t i = 0; i < sums.size() && parts > 1; ++i) {
      divide(sums[i], weights.divisor);
      if (sums[i].dtype() == types[i].dtype) continue;
      const Tensor rounded = make(runner_.meter(), types[i]);
      begin_sum(rounded, sums[i]);
      sums[i] = rounded;
    }
    if (parts == 1) return;
    double sum = 0;
    for (std::size_t m = 0; m < parts; ++m) sum += weights.of_parts[m] * losses[m].item();
    mean = Tensor::full(loss_type.shape, sum / weights.divisor, loss_type.dtype);
  });
  for (std::size_t i = 0; i < sums.size(); ++i) entries.push_back({leaves[i], sums[i]});
  return Gradients(std::move(mean), std::move(entries), std::move(report));
}

Tensor Pipeline::value(const ModelFunction& model, std::span<const Tensor> parameters,
                       std::span<const Tensor> batch, Report& report) {
  const Flow& flow = prepare(model, parameters, batch, [](const Var& made) { return made; }, false);
  const std::size_t parts = flow.outcomes.size();
  std::vector<MicroBatch> batches = micro_batches(flow);
  std::vector<Tensor> values;
  for (std::size_t m = 0; m < parts; ++m) {
    values.push_back(make(runner_.meter(), flow.outcomes[m].type()));
    batches[m].outcome = values[m].raw();
  }
  report = run(flow, batches, [](int, std::size_t, std::byte*) {});
  return put_together(values);
}

}  // namespace palimpsest
