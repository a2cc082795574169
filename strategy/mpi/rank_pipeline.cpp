#include "strategy/mpi/rank_pipeline.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "autodiff/number_text.h"
#include "autodiff/usable_threads.h"
#include "checkpoint/stores/hash.h"
#include "strategy/base/batch_parts.h"
#include "strategy/base/stopwatch.h"
#include "strategy/mpi/rank_parameters.h"
#include "strategy/mpi/step_options.h"
#include "strategy/mpi/tape_digest.h"
#include "strategy/parallel/partition/pieces_evaluator.h"
#include "strategy/run/tape_reading.h"

namespace palimpsest {
namespace {

/// The words that ranks exchange before anything is computed. The first two are those of
/// `DistributedStep`.
namespace said_by_stages {
enum Word : std::size_t {
  options,
  parameter_types,
  programs,
  parameters,
  whole_examples,
  whole_hash
};
}

}  // namespace

RankPipeline::RankPipeline(RankLink& link, const ExecutionStrategy& strategy,
                           const DistributedOptions& options, int threads)
    : link_(link),
      strategy_(strategy),
      options_(options),
      threads_(threads),
      flow_(strategy, evaluator_for_pieces(strategy), true),
      runner_(strategy.stages, threads, threads),
      exchange_(link) {}

Gradients RankPipeline::step(const Input& input) {
  std::optional<Step> step;
  std::list<InUse::Use> in_use;
  std::exception_ptr failure;
  try {
    step.emplace(prepare(input));
    in_use = flow_.use_tapes();  // allocates, so before the ranks agree to run
  } catch (...) {
    failure = std::current_exception();
  }
  agree(input, failure);

  const Stopwatch running;
  try {
    const auto add = [&](int m, std::size_t i, std::byte* gradient) {
      step->sums.add(m, i, gradient);
    };
    step->report = runner_.run_stage(exchange_, *flow_.plan(), flow_.order(), step->micro_batches,
                                     add, strategy_.run);
    step->report.run_seconds = running.seconds();
  } catch (...) {
    failure = std::current_exception();
  }
  in_use.clear();
  share_outputs(*step);
  try {
    if (failure == nullptr && !exchange_.is_cut_off()) prepare_end(*step);
  } catch (...) {
    failure = std::current_exception();
  }
  link_.meet(RankCall::end_of_step, {}, failure);
  share(*step);
  step->joined.updates.apply();

  std::vector<Tensor>& outputs = step->joined.outputs;
  std::optional<Gradients> made;
  if (input.scaler == nullptr) {
    made.emplace(std::move(step->loss), std::move(step->entries), std::move(step->report),
                 std::move(outputs));
  } else {
    const auto unscale = [&] {
      made.emplace(input.scaler->unscaled(std::move(step->loss), std::move(step->entries),
                                          std::move(step->report), std::move(outputs)));
    };
    runner_.execute(std::ref(unscale));  // a std::function with all captures would allocate
  }
  made->set_counts(std::move(step->counts));
  return std::move(*made);
}

/// Records, cuts, plans, and allocates the memory for all of it.
RankPipeline::Step RankPipeline::prepare(const Input& input) {
  require_parameters(input.parameters);
  const auto scale = [&](const Var& made) {
    return input.scaler != nullptr ? input.scaler->scale(made, input.where) : made;
  };
  flow_.record(input.loss, input.parameters, input.batch, scale, input.count, input.where);
  const int ranks_here = link_.ranks_here();
  flow_.plan(programs_,
             {.threads = threads_, .kept = runner_.kept(), .stage = link_.rank(), .free = [=] {
                return free_memory() / ranks_here;
              }});
  // Every rank has the whole batch, so it counts what the means of all ranks divide by.
  LossCounts counts = flow_.count(options_.reduction, [this] { runner_.release_memory(); });
  runner_.prepare(flow_.plan());
  std::vector<bool> is_made;
  for (const int stage : flow_.plan()->layout.gradient_stages) {
    is_made.push_back(stage == link_.rank());
  }
  const ValueType loss = flow_.outcomes().back().type();
  const Meter outputs;
  Step step{.outputs = outputs,
            .sums = {outputs, flow_.gradient_types(), is_made, flow_.outcomes(), flow_.examples(),
                     options_.reduction},
            .auxiliary = std::vector<std::vector<Tensor>>(flow_.outcomes().size()),
            .joined = {},
            .micro_batches = flow_.micro_batches(),
            .own_losses = std::vector<double>(flow_.outcomes().size()),
            .losses = std::vector<double>(flow_.outcomes().size()),
            .loss = Tensor(loss.shape, loss.dtype),
            .entries = {},
            .report = {},
            .counts = std::move(counts),
            .examples = examples_or_one(input.batch)};
  for (std::size_t m = 0; m < step.micro_batches.size(); ++m) {
    step.micro_batches[m].outcome = step.sums.loss_place(m);
    step.micro_batches[m].gradients = step.sums.gradients();
    for (const Var& output : flow_.outputs()[m]) {
      step.auxiliary[m].push_back(new_tensor(outputs, output.type()));
      step.micro_batches[m].outputs.push_back(step.auxiliary[m].back().raw());
    }
  }
  exchange_.prepare(*flow_.plan(), step.micro_batches);
  return step;
}

// Agreeing ----------------------------------------------------------------------------------------

void RankPipeline::agree(const Input& input, std::exception_ptr failure) {
  RankWords words{};
  try {
    if (failure == nullptr) words = words_before(input);
  } catch (...) {
    failure = std::current_exception();
  }
  const Stopwatch agreeing;
  const std::vector<RankWords>& said = link_.meet(RankCall::step, words, failure);
  agreeing_ = agreeing.seconds();
  const bool have_options = say_same(said, said_by_stages::options);
  if (have_options && !say_same(said, said_by_stages::whole_examples)) {
    blame_batch(link_, input.batch);
  }
  if (!have_options || !say_same(said, said_by_stages::parameter_types) ||
      !say_same(said, said_by_stages::programs)) {
    const auto program = [&] {
      std::vector<std::string> lines = options_in_lines(input);
      append_lines(input.parameters, lines);
      append_program_lines(lines);
      return lines;
    };
    link_.differ(program, "record one program on all ranks, with the same options");
  }
  if (!say_same(said, said_by_stages::parameters)) blame_parameters(link_, input.parameters);
  if (!say_same(said, said_by_stages::whole_hash)) blame_batch(link_, input.batch);
}

std::vector<std::string> RankPipeline::options_in_lines(const Input& input) const {
  const double scale = input.scaler != nullptr ? input.scaler->scale() : 1;
  return lines_of(strategy_, options_, scale, input.count);
}

/// The words of this rank if it has not failed.
RankWords RankPipeline::words_before(const Input& input) const {
  RankWords words{};
  words[said_by_stages::options] = hash_of(options_in_lines(input));
  words[said_by_stages::parameter_types] = digest_of(input.parameters);
  words[said_by_stages::programs] = digest();
  words[said_by_stages::whole_examples] = static_cast<std::uint64_t>(examples_or_one(input.batch));
  if (input.verifies) {
    words[said_by_stages::parameters] = hash_of(input.parameters);
    words[said_by_stages::whole_hash] = hash_of(input.batch);
  }
  return words;
}

/// A digest of the programs, of their cuts, and of the program of each micro-batch.
std::uint64_t RankPipeline::digest() const {
  std::vector<std::uint64_t> words(flow_.program_of().begin(), flow_.program_of().end());
  for (const auto& program : flow_.programs()) {
    const TapeDigest tape = digest_of(program->tape);
    words.insert(words.end(), {tape.structure, tape.shapes, tape.nodes});
    for (const CutProgram::Stage& stage : program->stages) words.push_back(stage.first);
    words.insert(words.end(), program->outputs.begin(), program->outputs.end());
  }
  words.push_back(digest_of(flow_.updates()));
  return hash_bytes(std::as_bytes(std::span(words)));
}

void RankPipeline::append_program_lines(std::vector<std::string>& lines) const {
  for (const auto& program : flow_.programs()) {
    append_lines(program->tape, program->tape.node_count(), true, lines);
    for (std::size_t stage = 0; stage < program->stages.size(); ++stage) {
      lines.push_back("stage " + std::to_string(stage) + " from node " +
                      std::to_string(program->stages[stage].first));
    }
    for (const ValueId output : program->outputs) {
      lines.push_back("output of node " + std::to_string(program->tape.producer(output)));
    }
  }
  for (const Tape::Update& update : flow_.updates()) {
    lines.push_back("update of " + to_string(update.target.type()) + ", weight " +
                    number_text(update.weight));
  }
  for (std::size_t m = 0; m < flow_.program_of().size(); ++m) {
    lines.push_back("micro-batch " + std::to_string(m) + " like program " +
                    std::to_string(flow_.program_of()[m]));
  }
}

// The end -----------------------------------------------------------------------------------------

/// Gives all ranks the outputs of each. Ranks whose stage failed take part.
void RankPipeline::share_outputs(Step& step) {
  const auto& stages = flow_.plan()->layout.output_stages;
  for (std::size_t m = 0; m < step.auxiliary.size(); ++m) {
    for (std::size_t i = 0; i < step.auxiliary[m].size(); ++i) {
      const Tensor& output = step.auxiliary[m][i];
      link_.broadcast({output.raw(), static_cast<std::size_t>(output.bytes())},
                      stages[flow_.program_of()[m]][i]);
    }
  }
}

/// Allocates everything that the end needs, so that afterwards all ranks return or none does.
void RankPipeline::prepare_end(Step& step) {
  runner_.execute([&] { step.sums.finish(); });
  for (std::size_t m = 0; m < step.own_losses.size(); ++m) {
    const int stage = flow_.plan()->layout.outcome_stages[flow_.program_of()[m]];
    if (stage == link_.rank()) step.own_losses[m] = step.sums.loss(m);
  }
  PartOutputs parts;
  for (std::size_t m = 0; m < step.auxiliary.size(); ++m) {
    parts.add(std::move(step.auxiliary[m]), flow_.examples()[m]);
  }
  step.joined = parts.join(flow_.updates());
  if (step.counts.empty()) step.counts = flow_.take_counts(step.joined.outputs);
  const std::vector<Var> leaves = flow_.parameters();
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    step.entries.push_back({leaves[i], step.sums.totals()[i]});
  }
  flow_.describe(step.report);
  step.report.threads = threads_;
  step.report.thread_problem = thread_problem(strategy_.run.threads);
  step.report.measured_peak += step.outputs.peak_reserved();
  step.report.measured_live_peak += step.outputs.peak();
  const auto stages = static_cast<std::size_t>(link_.size());
  const std::vector<Report::StageTask>& own = step.report.timeline;
  std::vector<Report::StageTask> timeline(own.size() * stages);
  const auto place = static_cast<std::size_t>(link_.rank()) * own.size();
  std::ranges::copy(own, timeline.begin() + static_cast<std::ptrdiff_t>(place));
  step.report.timeline = std::move(timeline);
  reports_.resize(stages);
}

/// Gives all ranks the results of each.
void RankPipeline::share(Step& step) {
  for (std::size_t i = 0; i < step.entries.size(); ++i) {
    const Tensor& gradient = step.entries[i].gradient;
    link_.broadcast({gradient.raw(), static_cast<std::size_t>(gradient.bytes())},
                    flow_.plan()->layout.gradient_stages[i]);
  }
  const double loss = share_losses(step);
  visit(step.loss.dtype(),
        [&]<class T>(T) { std::ranges::fill(step.loss.data<T>(), convert_element<T>(loss)); });
  share_report(step.report, step.examples);
}

double RankPipeline::share_losses(Step& step) {
  const std::vector<int>& stages = flow_.plan()->layout.outcome_stages;
  for (int stage = 0; stage < link_.size(); ++stage) {
    if (std::ranges::find(stages, stage) == stages.end()) continue;
    step.losses = step.own_losses;
    link_.broadcast(std::as_writable_bytes(std::span(step.losses)), stage);
    for (std::size_t m = 0; m < step.losses.size(); ++m) {
      if (stages[flow_.program_of()[m]] == stage) step.own_losses[m] = step.losses[m];
    }
  }
  return step.sums.total_loss(step.own_losses);
}

void RankPipeline::share_report(Report& report, std::int64_t examples) {
  const auto own = static_cast<std::size_t>(link_.rank());
  link_.gather(Report::Stage(report.stages[own]), std::span(report.stages));
  const std::size_t tasks = report.timeline.size() / report.stages.size();
  for (std::size_t stage = 0; stage < report.stages.size(); ++stage) {
    link_.broadcast(
        std::as_writable_bytes(std::span(report.timeline).subspan(stage * tasks, tasks)),
        static_cast<int>(stage));
  }
  link_.gather(RankReport{.examples = examples,
                          .bytes = exchange_.sent_bytes(),
                          .messages = exchange_.sent(),
                          .waiting_seconds = exchange_.waiting_seconds(),
                          .agreeing_seconds = agreeing_,
                          .predicted_peak = report.predicted_peak,
                          .measured_peak = report.measured_peak},
               std::span(reports_));
}

}  // namespace palimpsest
