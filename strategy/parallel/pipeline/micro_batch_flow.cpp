#include "strategy/parallel/pipeline/micro_batch_flow.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "strategy/base/batch_parts.h"
#include "strategy/base/free_memory.h"
#include "strategy/base/parameters.h"
#include "strategy/base/part_outputs.h"
#include "strategy/base/record_model.h"
#include "strategy/base/stopwatch.h"
#include "strategy/base/updates.h"
#include "strategy/compile/form_choice.h"
#include "strategy/evaluators/computed_outputs.h"
#include "strategy/parallel/partition/pieces_evaluator.h"
#include "strategy/run/report_of.h"

namespace palimpsest {

MicroBatchFlow::MicroBatchFlow(const ExecutionStrategy& strategy,
                               std::shared_ptr<EngineEvaluator> evaluator, bool with_gradients)
    : strategy_(strategy),
      evaluator_(std::move(evaluator)),
      with_gradients_(with_gradients),
      counts_(strategy) {
  const int parts = strategy.accumulation;
  order_ = std::make_unique<PipelineOrder>(with_gradients
                                               ? one_forward_one_backward(strategy.stages, parts)
                                               : forward_only(strategy.stages, parts));
}

Tape& MicroBatchFlow::cleared(int part, const Tape& count) {
  const auto index = static_cast<std::size_t>(part);
  if (tapes_.size() <= index) tapes_.resize(index + 1);
  std::unique_ptr<Tape>& tape = tapes_[index];
  if (tape == nullptr) tape = std::make_unique<Tape>(evaluator_);
  tape->clear();
  begin_part(*tape, part, count);
  return *tape;
}

void MicroBatchFlow::record(const ModelFunction& model, std::span<const Tensor> parameters,
                            std::span<const Tensor> batch, const Scale& scale, const Tape& count,
                            const Where& where) {
  const int parts = strategy_.accumulation;
  outcomes_.clear();
  outputs_.clear();
  updates_.clear();
  examples_.clear();
  const bool has_counts = parts > 1 && with_gradients_;
  counts_.begin(has_counts ? static_cast<std::size_t>(parts) : 0);
  for (int m = 0; m < parts; ++m) {
    const std::vector<Tensor> tensors = part_of(batch, m, parts);
    examples_.push_back(parts > 1 ? examples_of(tensors) : 1);
    Tape& tape = cleared(m, count);
    LossAndOutputs recorded = [&] {
      std::optional<CountedMeans::Recording> counting;
      if (has_counts) counting.emplace(tape, counts_.of(static_cast<std::size_t>(m)));
      return record_model(model, tape, parameters, tensors, where);
    }();
    if (has_counts) counts_.of(static_cast<std::size_t>(m)).counts();  // throws
    if (with_gradients_) require_not_frozen(tape, parameters, where);
    if (parts > 1 && with_gradients_) require_all_given(tape, parameters, where);
    if (!with_gradients_) recorded.outputs.clear();
    if (m == 0 && has_counts && !counts_.of(0).empty()) {
      has_other_terms_ = has_other_terms(recorded.loss);
    }
    if (parts == 1 && with_gradients_) {
      own_counts_.emplace(recorded.loss).append_to(recorded);
    }
    recorded.loss = scale(recorded.loss);
    if (with_gradients_) {
      if (m == 0) updates_.assign(tape.updates().begin(), tape.updates().end());
      require_same_updates(updates_, tape.updates());
      append_updates(recorded);
    }
    if (has_counts) counts_.note_needs(static_cast<std::size_t>(m), recorded);
    tape.forget_updates();
    require_nothing_computed(tape, "pipeline");
    LossAndOutputs computed = computed_for(*evaluator_, recorded);
    require_nothing_computed(computed.loss.tape(), "pipeline");
    outcomes_.push_back(computed.loss);
    outputs_.push_back(std::move(computed.outputs));
    require_equally_many(outputs_[0].size(), outputs_.back().size());
  }
  require_outputs_fit();
}

LossCounts MicroBatchFlow::count(LossReduction reduction, const std::function<void()>& release) {
  if (!counts_.any()) return {};
  LossCounts whole{counts_.count(release), has_other_terms_};
  const std::int64_t all = std::accumulate(examples_.begin(), examples_.end(), std::int64_t{0});
  counts_.share(whole.counts, weights_of_parts(examples_, all, reduction));
  whole.counts = counts_.of_loss(whole.counts);
  return whole;
}

LossCounts MicroBatchFlow::take_counts(std::vector<Tensor>& outputs) const {
  if (!own_counts_) return {};
  const std::size_t requested = outputs.size() - own_counts_->size();
  LossCounts counts = own_counts_->read(std::span(outputs).subspan(requested));
  outputs.resize(requested);
  return counts;
}

void MicroBatchFlow::require_outputs_fit() const {
  for (std::size_t i = 0; i + updates_.size() < outputs_[0].size(); ++i) {
    std::vector<ValueType> types;
    for (const std::vector<Var>& outputs : outputs_) types.push_back(outputs[i].type());
    type_of_output(types);
  }
}

std::vector<Bytes> MicroBatchFlow::bytes_of_outputs() const {
  std::vector<Bytes> bytes(outputs_[0].size());
  for (const std::vector<Var>& outputs : outputs_) {
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] += outputs[i].type().bytes();
  }
  const bool is_joined = outputs_.size() > 1;
  for (std::size_t i = 0; is_joined && i + updates_.size() < bytes.size(); ++i) bytes[i] *= 2;
  return bytes;
}

std::shared_ptr<CutProgram> MicroBatchFlow::find_or_cut(
    std::size_t micro_batch, std::span<const std::shared_ptr<CutProgram>> found) const {
  const LossAndOutputs values(outcomes_[micro_batch], outputs_[micro_batch]);
  const auto is_same = [&](const auto& program) { return is_recorded_again(*program, values); };
  // Usually it is the program that it was in the previous batch.
  if (micro_batch < program_of_.size()) {
    const std::shared_ptr<CutProgram>& before = programs_[program_of_[micro_batch]];
    if (is_same(before)) return before;
  }
  for (const auto& known : {found, std::span<const std::shared_ptr<CutProgram>>(programs_)}) {
    const auto same = std::ranges::find_if(known, is_same);
    if (same != known.end()) return *same;
  }
  auto program = with_gradients_ ? cut_loss(values, strategy_.stages)
                                 : cut_value(values.loss, strategy_.stages);
  require_nothing_left(values.loss.tape(), "pipeline");
  return program;
}

void MicroBatchFlow::find_programs() {
  std::vector<std::shared_ptr<CutProgram>> found;
  std::vector<std::size_t> program_of;
  for (std::size_t m = 0; m < outcomes_.size(); ++m) {
    const std::shared_ptr<CutProgram> program = find_or_cut(m, found);
    const auto same = std::ranges::find(found, program);
    program_of.push_back(static_cast<std::size_t>(same - found.begin()));
    if (same == found.end()) found.push_back(program);
  }
  if (found != programs_ || program_of != program_of_) plan_ = nullptr;
  programs_ = std::move(found);
  program_of_ = std::move(program_of);
}

void MicroBatchFlow::plan(PiecePrograms& programs, const Planning& planning) {
  const Stopwatch observer;
  find_programs();
  const std::list<InUse::Use> in_use = use_tapes();
  RunOptions options = strategy_.run_options();
  if (!with_gradients_) options.planner = nullptr;
  if (plan_ != nullptr && takes_free_memory(options) &&
      budget_of_free_memory(plan_->predicted_peak, planning.kept, planning.free)) {
    plan_ = nullptr;  // planned when more memory was free
  }
  plan_reused_ = plan_ != nullptr;
  if (!plan_reused_) {
    Bytes bytes = 0;
    for (const Var& outcome : outcomes_) bytes += outcome.type().bytes();
    // Concatenating the values takes the same bytes again.
    if (!with_gradients_ && outcomes_.size() > 1) bytes *= 2;
    std::vector<const CutProgram*> cut;
    for (const auto& program : programs_) cut.push_back(program.get());
    const PipelineRequest request{
        .programs = cut,
        .order = *order_,
        .gradient = with_gradients_ ? strategy_.gradient : GradientMode::none,
        .pieces = {std::move(options), planning.threads, strategy_.checkpoint_fraction.has_value(),
                   strategy_.gradient == GradientMode::full},
        .sums_gradients = with_gradients_ && strategy_.accumulation > 1,
        .outcomes = bytes,
        .outputs = bytes_of_outputs(),
        .kept = planning.kept,
        .free = planning.free,
        .stage = planning.stage};
    std::shared_ptr<const PipelinePlan> planned;
    std::optional<BudgetError> refused;
    try {
      planned = std::make_shared<const PipelinePlan>(plan_pipeline(request, programs));
    } catch (const BudgetError& error) {
      refused = error;
    }
    throw_larger(refused, counts_.refusal());
    plan_ = std::move(planned);
  }
  planning_seconds_ = observer.seconds();
}

std::vector<ValueType> MicroBatchFlow::gradient_types() const {
  const CutProgram& program = *programs_[0];
  std::vector<ValueType> types;
  for (const ValueId gradient : program.gradients) types.push_back(program.tape.type(gradient));
  return types;
}

std::vector<Var> MicroBatchFlow::parameters() const { return parameters_of(*tapes_.back()); }

std::list<InUse::Use> MicroBatchFlow::use_tapes() const {
  std::list<InUse::Use> uses;  // the last one first, as it ends first
  for (std::size_t m = 0; m < outcomes_.size(); ++m) {
    uses.emplace_front(tapes_[m]->in_use(), tape_use::computing, "pipeline");
    uses.emplace_front(outcomes_[m].tape().in_use(), tape_use::computing, "pipeline");
  }
  return uses;
}

std::vector<MicroBatch> MicroBatchFlow::micro_batches() const {
  std::vector<MicroBatch> batches;
  for (std::size_t m = 0; m < outcomes_.size(); ++m) {
    const std::size_t program = program_of_[m];
    const Tape& tape = outcomes_[m].tape();
    const std::uint32_t round = tape.generation() - programs_[program]->tape.generation();
    batches.push_back({program, &tape, round, nullptr, {}, {}});
  }
  return batches;
}

void MicroBatchFlow::describe(Report& report) const {
  report.planner = "pipeline";
  report.kernel_level = kernel_level();
  report.precision = evaluator_->precision();
  report.micro_batches = strategy_.accumulation;
  report.budget = plan_->budget;
  report.keep_all_peak = plan_->keep_all_peak;
  report.predicted_peak = plan_->predicted_peak;
  report.plan_reused = plan_reused_;
  report.planning_seconds = planning_seconds_;
  report.compute_overhead = plan_->compute_overhead();
  for (const Var& outcome : outcomes_) report.tape_metadata += outcome.tape().metadata_bytes();
  if (strategy_.run.profile) report.resident = resident_size();
}

}  // namespace palimpsest
