#include "strategy/parallel/pipeline/pipeline.h"

#include <algorithm>

#include "autodiff/usable_threads.h"
#include "strategy/base/batch_parts.h"
#include "strategy/base/counted_call.h"
#include "strategy/base/part_outputs.h"
#include "strategy/base/stopwatch.h"
#include "strategy/parallel/partition/pieces_evaluator.h"
#include "strategy/parallel/pipeline/micro_batch_sums.h"
#include "strategy/run/tape_reading.h"

namespace palimpsest {
namespace {

/// The larger of two times: the longest chain of dependent tasks, and all work divided evenly among
/// threads.
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

/// Allocates the outputs of all micro-batches, which are then written there.
std::vector<std::vector<Tensor>> places_of_outputs(const MicroBatchFlow& flow, const Meter& meter,
                                                   std::span<MicroBatch> batches) {
  std::vector<std::vector<Tensor>> places(batches.size());
  for (std::size_t m = 0; m < batches.size(); ++m) {
    for (const Var& output : flow.outputs()[m]) {
      places[m].push_back(new_tensor(meter, output.type()));
      batches[m].outputs.push_back(places[m].back().raw());
    }
  }
  return places;
}

}  // namespace

Pipeline::Pipeline(const ExecutionStrategy& strategy, LossReduction reduction)
    : strategy_(strategy),
      reduction_(reduction),
      threads_(strategy.thread_count()),
      threads_of_stage_(std::max(1, threads_ / strategy.stages)),
      evaluator_(evaluator_for_pieces(strategy)),
      runner_(strategy.stages, threads_, threads_of_stage_),
      gradients_{.flow = {strategy_, evaluator_, true}},
      values_{.flow = {strategy_, evaluator_, false}} {}

void Pipeline::prepare(Batches& batches, const ModelFunction& model,
                       std::span<const Tensor> parameters, std::span<const Tensor> batch,
                       const Scale& scale, const Where& where) {
  if (strategy_.accumulation > 1) examples_of(batch);  // throws
  batches.flow.record(model, parameters, batch, scale, batches.count, where);
  batches.flow.plan(programs_,
                    {.threads = threads_of_stage_, .kept = runner_.kept(), .stage = {}, .free = [] {
                       return free_memory();
                     }});
}

PiecesForecast Pipeline::forecast(const ModelFunction& model, std::span<const Tensor> parameters,
                                  std::span<const Tensor> batch, const Scale& scale,
                                  bool with_gradients, const Where& where) {
  Batches& batches = with_gradients ? gradients_ : values_;
  const CountedCall counted(batches.count);
  prepare(batches, model, parameters, batch, scale, where);
  const PipelinePlan& plan = *batches.flow.plan();
  return {plan.predicted_peak, std::max(plan.keep_all_peak, plan.predicted_peak),
          seconds_of(plan, batches.flow.order(), threads_, threads_of_stage_),
          plan.compute_overhead()};
}

Report Pipeline::run(const MicroBatchFlow& flow, std::span<const MicroBatch> micro_batches,
                     const PipelineRunner::TakeGradient& take, const Meter& outputs) {
  const Stopwatch running;
  const std::list<InUse::Use> in_use = flow.use_tapes();
  Report report = runner_.run(flow.plan(), flow.order(), micro_batches, take, strategy_.run);
  report.run_seconds = running.seconds();
  report.threads = threads_;
  report.thread_problem = thread_problem(strategy_.run.threads);
  report.measured_peak += outputs.peak_reserved();
  report.measured_live_peak += outputs.peak();
  flow.describe(report);
  report.plan_cache = programs_.bytes();
  return report;
}

Gradients Pipeline::gradients(const ModelFunction& loss, std::span<const Tensor> parameters,
                              std::span<const Tensor> batch, const Scale& scale,
                              const Where& where) {
  const CountedCall counted(gradients_.count);
  prepare(gradients_, loss, parameters, batch, scale, where);
  MicroBatchFlow& flow = gradients_.flow;
  LossCounts counts = flow.count(reduction_, [this] { runner_.release_memory(); });
  const std::vector<ValueType> types = flow.gradient_types();
  const Meter outputs;
  MicroBatchSums sums(outputs, types, std::vector<bool>(types.size(), true), flow.outcomes(),
                      flow.examples(), reduction_);
  std::vector<MicroBatch> batches = flow.micro_batches();
  for (std::size_t m = 0; m < batches.size(); ++m) {
    batches[m].outcome = sums.loss_place(m);
    batches[m].gradients = sums.gradients();
  }
  std::vector<std::vector<Tensor>> of_parts = places_of_outputs(flow, outputs, batches);
  Report report = run(
      flow, batches, [&](int m, std::size_t i, std::byte* gradient) { sums.add(m, i, gradient); },
      outputs);
  runner_.execute([&] { sums.finish(); });
  std::vector<double> losses;
  for (std::size_t m = 0; m < batches.size(); ++m) losses.push_back(sums.loss(m));
  std::vector<Gradients::Entry> entries;
  const std::vector<Var> leaves = flow.parameters();
  for (std::size_t i = 0; i < leaves.size(); ++i) entries.push_back({leaves[i], sums.totals()[i]});
  PartOutputs parts;
  for (std::size_t m = 0; m < batches.size(); ++m) {
    parts.add(std::move(of_parts[m]), flow.examples()[m]);
  }
  const ValueType type = flow.outcomes().back().type();
  std::vector<Tensor> outputs_of_all = parts.finish(flow.updates());
  if (counts.empty()) counts = flow.take_counts(outputs_of_all);
  Gradients gradients(Tensor::full(type.shape, sums.total_loss(losses), type.dtype),
                      std::move(entries), std::move(report), std::move(outputs_of_all));
  gradients.set_counts(std::move(counts));
  return gradients;
}

Tensor Pipeline::value(const ModelFunction& model, std::span<const Tensor> parameters,
                       std::span<const Tensor> batch, Report& report, const Where& where) {
  const CountedCall counted(values_.count);
  prepare(values_, model, parameters, batch, [](const Var& made) { return made; }, where);
  const MicroBatchFlow& flow = values_.flow;
  std::vector<MicroBatch> batches = flow.micro_batches();
  const Meter outputs;
  std::vector<ValueType> types;
  std::vector<Tensor> values;
  for (std::size_t m = 0; m < batches.size(); ++m) {
    const ValueType type = flow.outcomes()[m].type();
    types.push_back(type);
    values.emplace_back(outputs.allocate(type.bytes()), type.shape, type.dtype);
    batches[m].outcome = values[m].raw();
  }
  type_together(types);  // throws
  report = run(flow, batches, [](int, std::size_t, std::byte*) {}, outputs);
  return put_together(values);
}

}  // namespace palimpsest
