#include "strategy/mpi/distributed_step.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "autodiff/usable_threads.h"
#include "checkpoint/stores/hash.h"
#include "strategy/base/batch_parts.h"
#include "strategy/base/loss_counts.h"
#include "strategy/mpi/rank_parameters.h"
#include "strategy/mpi/step_options.h"

namespace palimpsest {
namespace {

/// Sets a replica's observer for its lifetime.
class Watched {
 public:
  Watched(Replica& replica, RunObserver& observer) : replica_(replica) {
    replica_.set_observer(&observer);
  }
  ~Watched() { replica_.set_observer(nullptr); }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

 private:
  Replica& replica_;
};

/// The words that ranks exchange before anything is computed.
namespace before {
enum Word : std::size_t {
  options,
  parameter_types,
  structure,
  shapes,
  shard_types,
  examples,
  first_examples,
  parameters,
  laid_out,
  whole_examples,
  whole_hash
};
}
/// The words that ranks exchange when everything is computed.
namespace after {
enum Word : std::size_t { micro_batches, loss };
}

}  // namespace

Gradients DistributedStep::run() {
  std::exception_ptr failure;
  try {
    compute();
  } catch (...) {
    failure = std::current_exception();
  }
  if (is_refused_) std::rethrow_exception(failure);
  if (!is_agreed_) agree(failure);
  if (setting_.gradients != nullptr) exchange(failure);
  return end(failure);
}

// Computing ---------------------------------------------------------------------------------------

void DistributedStep::compute() {
  cut();
  setting_.replica.begin();
  if (setting_.gradients != nullptr) setting_.gradients->begin();
  try {
    prepare();
    for (int k = 0; k < micro_batches(); ++k) compute_part(k);
  } catch (const BudgetError& refused) {
    const Bytes budget = setting_.strategy.run.memory_budget;
    if (setting_.gradients == nullptr || budget == unlimited) throw;
    const Bytes sums = setting_.gradients->bytes();
    const Bytes all = refused.smallest_feasible() + sums;
    throw BudgetError("[ranks] gradient sums over ranks, of " + std::to_string(sums) +
                          " bytes, and a run need a budget of " + std::to_string(all) +
                          " bytes, not " + std::to_string(budget) +
                          "; for the run: " + refused.what(),
                      budget, all);
  }
}

/// Finds the micro-batches of this rank.
void DistributedStep::cut() {
  const auto scale = [this](const Var& loss) {
    return setting_.scaler != nullptr ? setting_.scaler->scale(loss, input_.where) : loss;
  };
  parts_.emplace(RecordedParts::Setting{
      input_.loss, input_.parameters, input_.batch, input_.where, micro_batches(),
      std::span(&setting_.replica, 1), setting_.count, setting_.counts, scale,
      RecordedParts::Process{setting_.link.rank(), setting_.link.size(), !input_.is_whole}});
  for (int k = 0; k < micro_batches(); ++k) {
    if (parts_->examples(k) > 0) continue;
    throw ArgumentError("[ranks] the shard of rank " + std::to_string(setting_.link.rank()) +
                        " has no examples; give every rank at least one");
  }
}

/// Records what must be recorded before the first micro-batch is computed.
void DistributedStep::prepare() {
  record(0);
  if (!setting_.counts.any()) {
    setting_.counts.expect_none();
    // Without gradients, nothing tells that a run begins.
    if (input_.parameters.empty()) agree_before_run();
    return;
  }
  records_again_ = setting_.strategy.mode != ExecutionMode::lazy;
  for (int k = 0; !records_again_ && k < micro_batches(); ++k) {
    if (k > 0) record(k);
    // Values that a model has read must neither take memory nor keep the count of its part.
    setting_.replica.drop_values((*parts_)[k]);
  }
  count();
  // A run reads what the means divide by, so it begins when all ranks have counted.
  if (!records_again_) return agree_before_run();
  // The means are computed as they are recorded, so they need their counts before.
  agree(nullptr);
  record(0);
}

/// Agrees with the other ranks before the run of the first micro-batch begins.
void DistributedStep::agree_before_run() {
  setting_.replica.check((*parts_)[0]);
  agree(nullptr);
}

void DistributedStep::record(int micro_batch) {
  parts_->record(micro_batch);
  Tape& tape = (*parts_)[micro_batch].loss.tape();
  const std::vector<Tape::Update>& updates = parts_->updates(micro_batch);
  TapeDigest digest = digest_of(tape);
  const std::uint64_t with_updates[] = {digest.structure, digest_of(updates)};
  digest.structure = hash_bytes(std::as_bytes(std::span(with_updates)));
  if (micro_batch > 0) {
    others_ = hash_bytes(std::as_bytes(std::span(&others_, 1)), digest.structure);
    require_same_updates(updates_.updates(), updates);
  } else if (!is_agreed_) {
    tape_ = &tape;
    first_ = digest;
    updates_.begin(tape, updates);
  }
}

/// Counts what the means of this rank divide by.
void DistributedStep::count() {
  has_other_terms_ = has_other_terms((*parts_)[0].loss);
  try {
    counts_ = records_again_ ? parts_->count_first()
                             : setting_.counts.count([this] { setting_.replica.release_memory(); });
  } catch (const BudgetError& of_counting) {
    // The refusal names a budget that is enough for the step too.
    std::optional<BudgetError> of_step;
    try {
      setting_.replica.check((*parts_)[0]);
    } catch (const BudgetError& refused) {
      of_step = refused;
    }
    throw *larger_of(of_counting, of_step);
  }
  counts_of_all_.resize(counts_.size());
  counts_received_.resize(counts_.size());
}

void DistributedStep::compute_part(int micro_batch) {
  const std::int64_t examples = parts_->examples(micro_batch);
  const bool is_mean = setting_.options.reduction == LossReduction::mean;
  term_ = {is_mean ? static_cast<double>(examples) / static_cast<double>(parts_->examples(0)) : 1,
           micro_batch == 0, micro_batch == micro_batches() - 1};
  if (!parts_->has(micro_batch)) record(micro_batch);
  const Gradients gradients = differentiate((*parts_)[micro_batch]);
  take_outputs(gradients.outputs(), examples);
  if (!is_agreed_) agree(nullptr);  // nothing was run
  loss_ += term_.weight * gradients.loss().item();
  if (term_.is_last) last_ = gradients;
  if (setting_.gradients == nullptr) return;
  // Gradients that no step made. The others have been added, and are ignored here.
  for (std::size_t i = 0; i < gradients.entries().size(); ++i) {
    const Tensor& gradient = gradients.entries()[i].gradient;
    setting_.gradients->add(i, {gradient.raw(), gradient.type()}, term_);
  }
  setting_.gradients->next_micro_batch();
}

/// Only this run is observed: a model may compute gradients of its own while it records.
Gradients DistributedStep::differentiate(const LossAndOutputs& values) {
  first_gradient_ = setting_.replica.first_gradient(values);
  const Watched observed(setting_.replica, *this);
  return setting_.replica.differentiate(values);
}

/// Takes the auxiliary outputs and the values of updates of a micro-batch.
void DistributedStep::take_outputs(std::span<const Tensor> outputs, std::int64_t examples) {
  const std::size_t requested = outputs.size() - updates_.updates().size();
  std::vector<Tensor> own;
  for (const Tensor& output : outputs.first(requested)) {
    // A copy does not hold the memory of the micro-batch's run.
    own.push_back(micro_batches() > 1 ? output.clone() : output);
  }
  outputs_.add(std::move(own), examples);
  updates_.add(outputs.subspan(requested), examples);
}

void DistributedStep::begin() {
  if (!is_agreed_) agree(nullptr);
}

void DistributedStep::made(std::size_t target, const Operand& value) {
  const bool is_gradient =
      target >= first_gradient_ && target - first_gradient_ < input_.parameters.size();
  if (is_gradient && setting_.gradients != nullptr) {
    setting_.gradients->add(target - first_gradient_, value, term_);
  }
}

void DistributedStep::stepped() {
  if (setting_.gradients != nullptr) setting_.gradients->exchange().progress();
}

// Agreeing ----------------------------------------------------------------------------------------

void DistributedStep::agree(std::exception_ptr failure) {
  is_refused_ = true;  // unless all ranks agree
  RankWords words{};
  try {
    if (failure == nullptr) words = words_before();
  } catch (...) {
    failure = std::current_exception();
  }
  const Stopwatch agreeing;
  const std::vector<RankWords>& said = setting_.link.meet(RankCall::step, words, failure);
  agreeing_ = agreeing.seconds();
  compare(said);
  const bool forgets_order = !say_same(said, before::laid_out);
  setting_.link.add(counts_, counts_received_, counts_of_all_);
  try {
    set_weights(said);
    share_counts();
    if (forgets_order) {
      setting_.gradients->forget_order();
      setting_.gradients->begin();
    }
  } catch (...) {
    failure = std::current_exception();
  }
  // Without a common layout there is no exchange for a failing rank to go through, so ranks meet
  // once more.
  if (forgets_order) setting_.link.meet(RankCall::step, {}, failure);
  is_refused_ = false;
  is_agreed_ = true;
  if (failure != nullptr) std::rethrow_exception(failure);
}

/// The words of this rank if it has not failed.
RankWords DistributedStep::words_before() const {
  RankWords words{};
  words[before::options] = hash_of(options_in_lines());
  words[before::parameter_types] = digest_of(input_.parameters);
  words[before::structure] = first_.structure;
  words[before::shapes] = first_.shapes;
  words[before::shard_types] = digest_of(parts_->tensors(0));
  words[before::examples] = static_cast<std::uint64_t>(parts_->total_examples());
  words[before::first_examples] = static_cast<std::uint64_t>(parts_->examples(0));
  if (input_.is_whole) {
    words[before::whole_examples] = static_cast<std::uint64_t>(examples_or_one(input_.batch));
    if (input_.verifies) words[before::whole_hash] = hash_of(input_.batch);
  }
  const RankGradients* const gradients = setting_.gradients;
  if (gradients != nullptr && gradients->is_laid_out()) {
    words[before::laid_out] = hash_bytes(std::as_bytes(gradients->order())) | 1;
  }
  if (input_.verifies) words[before::parameters] = hash_of(input_.parameters);
  return words;
}

void DistributedStep::compare(const std::vector<RankWords>& said) {
  if (say_same(said, before::options) && !say_same(said, before::whole_examples)) {
    blame_batch(setting_.link, input_.batch);
  }
  const bool have_shapes = say_same(said, before::shard_types);
  const bool is_same = say_same(said, before::options) && say_same(said, before::parameter_types) &&
                       say_same(said, before::structure) &&
                       (!have_shapes || say_same(said, before::shapes));
  if (!is_same) {
    const auto program = [&] {
      std::vector<std::string> lines = options_in_lines();
      append_lines(input_.parameters, lines);
      append_lines(*tape_, first_.nodes, have_shapes, lines);
      append_lines(*tape_, updates_.updates(), lines);
      return lines;
    };
    setting_.link.differ(program, "record one program on all ranks, with the same options");
  }
  if (!say_same(said, before::parameters)) blame_parameters(setting_.link, input_.parameters);
  if (!say_same(said, before::whole_hash)) blame_batch(setting_.link, input_.batch);
}

void DistributedStep::set_weights(const std::vector<RankWords>& said) {
  for (const RankWords& words : said) {
    examples_of_all_ += static_cast<std::int64_t>(words[before::examples]);
  }
  if (setting_.options.reduction == LossReduction::sum) {
    weights_ = {std::vector<double>(said.size(), 1), 1};
  } else {
    // Relative to the first part of all, so that the bits are those of an accumulator.
    const auto first = static_cast<double>(said[0][before::first_examples]);
    double all = 0;
    for (const RankWords& words : said) {
      all += static_cast<double>(words[before::examples]);
      weights_.weights.push_back(static_cast<double>(words[before::first_examples]) / first);
    }
    weights_.divisor = all / first;
  }
  if (setting_.gradients != nullptr) setting_.gradients->set_weights(weights_);
}

/// Makes the means of this rank's micro-batches divide by their shares of the whole counts.
void DistributedStep::share_counts() {
  if (counts_.empty()) return;
  const std::vector<double> weights = parts_->weights(setting_.options.reduction, examples_of_all_);
  if (records_again_) {
    setting_.counts.share_with_later(counts_of_all_, weights);
  } else {
    setting_.counts.share(counts_of_all_, weights);
  }
}

std::vector<std::string> DistributedStep::options_in_lines() const {
  const double scale = setting_.scaler != nullptr ? setting_.scaler->scale() : 1;
  std::vector<std::string> lines =
      lines_of(setting_.strategy, setting_.options, scale, setting_.count);
  lines.emplace_back(input_.is_whole ? "gradients()" : "gradients_of_shard()");
  lines.push_back("means over counted targets: " + std::to_string(counts_.size()));
  return lines;
}

// The end -----------------------------------------------------------------------------------------

/// Waits for all gradients, even if this rank failed: other ranks wait for its part.
void DistributedStep::exchange(std::exception_ptr& failure) {
  BucketExchange& exchange = setting_.gradients->exchange();
  exchange.end_backward();
  const Stopwatch waiting;
  try {
    if (failure == nullptr) setting_.arena.execute([&] { exchange.finish(); });
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure != nullptr) exchange.abandon();
  waiting_ = waiting.seconds();
}

Gradients DistributedStep::end(std::exception_ptr failure) {
  RankGradients* const gradients = setting_.gradients;
  const bool finds_order = gradients != nullptr && !gradients->is_laid_out();
  if (finds_order) gradients->share_order();
  Report report = take_report();
  updates_.exchange(setting_.link);
  try {
    if (failure == nullptr) prepare_end();
    if (failure == nullptr && finds_order) gradients->prepare_order();
    report.thread_problem = thread_problem(setting_.strategy.run.threads);
  } catch (...) {
    failure = std::current_exception();
  }
  RankWords words{};
  words[after::micro_batches] = others_;
  words[after::loss] = std::bit_cast<std::uint64_t>(loss_);
  const std::vector<RankWords>& said = setting_.link.meet(RankCall::end_of_step, words, failure);
  if (!say_same(said, after::micro_batches)) {
    const auto others = [&] {
      return std::vector{"micro-batches that record " + std::to_string(others_)};
    };
    setting_.link.differ(others, "record one program in all micro-batches");
  }
  setting_.link.gather(report_of_rank(report), std::span(reports_));
  if (finds_order) gradients->lay_out_prepared();
  return setting_.arena.execute([&] { return finish(said, std::move(report)); });
}

/// Allocates everything that `finish` needs, so that afterwards all ranks return or none does.
void DistributedStep::prepare_end() {
  reports_.resize(static_cast<std::size_t>(setting_.link.size()));
  entries_.assign(last_->begin(), last_->end());
  loss_of_all_ = last_->loss();
  joined_ = outputs_.finish({});
  keep_from_updates(updates_.updates(), joined_);
  staged_ = updates_.staged(examples_of_all_);
  RankGradients* const gradients = setting_.gradients;
  if (gradients == nullptr) return;
  loss_of_all_ = Tensor(loss_of_all_.shape(), loss_of_all_.dtype());
  setting_.arena.execute([&] { gradients->round(); });
  for (std::size_t i = 0; i < entries_.size(); ++i) entries_[i].gradient = gradients->gradient(i);
}

Report DistributedStep::take_report() {
  Report report = setting_.replica.take_report();
  if (setting_.strategy.run.memory_budget != unlimited)
    report.budget = setting_.strategy.run.memory_budget;
  report.micro_batches = micro_batches();
  if (setting_.gradients == nullptr) return report;
  const Bytes sums = setting_.gradients->bytes();
  for (Bytes* peak : {&report.predicted_peak, &report.measured_peak, &report.predicted_live_peak,
                      &report.measured_live_peak, &report.keep_all_peak}) {
    *peak += sums;
  }
  return report;
}

RankReport DistributedStep::report_of_rank(const Report& report) const {
  RankReport own{.examples = examples_here(),
                 .agreeing_seconds = agreeing_,
                 .predicted_peak = report.predicted_peak,
                 .measured_peak = report.measured_peak};
  if (setting_.gradients == nullptr) return own;
  const BucketExchange& exchange = setting_.gradients->exchange();
  own.bytes = setting_.gradients->sent();
  own.buckets = setting_.gradients->buckets();
  own.started_early = exchange.started_early();
  own.ended_early = exchange.ended_early();
  own.overlapped_seconds = exchange.overlapped_seconds();
  own.waiting_seconds = waiting_;
  return own;
}

std::int64_t DistributedStep::examples_here() const {
  return setting_.gradients == nullptr ? examples_or_one(input_.batch) : parts_->total_examples();
}

Gradients DistributedStep::finish(const std::vector<RankWords>& said, Report report) {
  if (setting_.gradients != nullptr) {
    double sum = 0;
    for (std::size_t r = 0; r < said.size(); ++r) {
      sum += weights_.weights[r] * std::bit_cast<double>(said[r][after::loss]);
    }
    visit(loss_of_all_.dtype(), [&]<class T>(T) {
      std::ranges::fill(loss_of_all_.data<T>(), convert_element<T>(sum / weights_.divisor));
    });
  }
  staged_->apply();
  const auto made = [&] {
    return setting_.scaler != nullptr
               ? setting_.scaler->unscaled(std::move(loss_of_all_), std::move(entries_),
                                           std::move(report), std::move(joined_))
               : Gradients(std::move(loss_of_all_), std::move(entries_), std::move(report),
                           std::move(joined_));
  };
  Gradients gradients = made();
  if (setting_.gradients == nullptr) {
    gradients.set_counts(last_->counts());
  } else {
    gradients.set_counts({setting_.counts.of_loss(counts_of_all_), has_other_terms_});
  }
  return gradients;
}

}  // namespace palimpsest
