#include "strategy/mpi/distributed_step.h"

#include <bit>
#include <numeric>
#include <utility>

#include "checkpoint/stores/hash.h"
#include "strategy/execution/batch_parts.h"
#include "strategy/execution/record_model.h"
#include "strategy/mpi/rank_parameters.h"

namespace palimpsest {
namespace {

/// What ranks tell each other before anything is computed.
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
  laid_out
};
}
/// And when everything is.
namespace after {
enum Word : std::size_t { micro_batches, loss };
}

}  // namespace

Gradients DistributedStep::run() {
  std::exception_ptr failure;
  setting_.replica.set_watch(this);
  try {
    compute();
  } catch (...) {
    failure = std::current_exception();
  }
  setting_.replica.set_watch(nullptr);
  if (is_refused_) std::rethrow_exception(failure);
  if (!is_agreed_) agree(failure);
  if (setting_.gradients != nullptr) {
    BucketExchange& exchange = setting_.gradients->exchange();
    exchange.end_backward();
    const Stopwatch waiting;
    setting_.arena.execute([&] { failure == nullptr ? exchange.finish() : exchange.abandon(); });
    waiting_ = waiting.seconds();
  }
  return end(failure);
}

// Computing ---------------------------------------------------------------------------------------

void DistributedStep::compute() {
  cut();
  if (setting_.gradients != nullptr) setting_.gradients->begin();
  try {
    for (int k = 0; k < micro_batches(); ++k) compute_part(k);
  } catch (const BudgetError& refused) {
    const Bytes budget = setting_.strategy.memory_budget;
    if (setting_.gradients == nullptr || budget == unlimited) throw;
    const Bytes sums = setting_.gradients->bytes();
    const Bytes all = refused.smallest_feasible() + sums;
    throw BudgetError("[ranks] gradients that are added up over ranks, of " + std::to_string(sums) +
                          " bytes, and a run need a budget of " + std::to_string(all) +
                          " bytes, not " + std::to_string(budget) +
                          "; of the run: " + refused.what(),
                      budget, all);
  }
}

/// Finds the micro-batches of this rank.
void DistributedStep::cut() {
  const int parts = setting_.link.size() * micro_batches();
  for (int k = 0; k < micro_batches(); ++k) {
    parts_.push_back(input_.is_whole ? part_of(input_.batch, part(k), parts)
                                     : part_of(input_.batch, k, micro_batches()));
    // A batch that nobody cuts may have any shapes.
    examples_.push_back(parts > 1 ? examples_of(parts_.back()) : 1);
  }
}

void DistributedStep::compute_part(int micro_batch) {
  const auto k = static_cast<std::size_t>(micro_batch);
  const bool is_mean = setting_.options.reduction == LossReduction::mean;
  term_ = {is_mean ? static_cast<double>(examples_[k]) / static_cast<double>(examples_[0]) : 1,
           micro_batch == 0, micro_batch == micro_batches() - 1};
  // Numbered as in one process, random operations draw the same numbers.
  Tape& tape = setting_.replica.tape(micro_batch, part(micro_batch), setting_.count);
  const Var loss = record_model(input_.loss, tape, input_.parameters, parts_[k]);
  if (setting_.gradients != nullptr) require_all_given(tape, input_.parameters);
  const TapeDigest digest = digest_of(tape);
  if (term_.is_first) {
    tape_ = &tape;
    first_ = digest;
  } else {
    others_ = hash_bytes(std::as_bytes(std::span(&others_, 1)), digest.structure);
  }
  LossScaler* const scaler = setting_.scaler;
  const Gradients gradients =
      setting_.replica.differentiate(scaler != nullptr ? scaler->scale(loss) : loss);
  if (!is_agreed_) agree(nullptr);  // nothing was run
  loss_ += term_.weight * gradients.loss().item();
  if (term_.is_last) last_ = gradients;
  if (setting_.gradients == nullptr) return;
  // Those that no step made; the others have been added.
  for (std::size_t i = 0; i < gradients.entries().size(); ++i) {
    const Tensor& gradient = gradients.entries()[i].gradient;
    setting_.gradients->add(i, {gradient.raw(), gradient.type()}, term_);
  }
  setting_.gradients->next_micro_batch();
}

void DistributedStep::begin() {
  if (!is_agreed_) agree(nullptr);
}

void DistributedStep::made(std::size_t target, const Operand& value) {
  const bool is_gradient = target > 0 && target <= input_.parameters.size();
  if (is_gradient && setting_.gradients != nullptr) {
    setting_.gradients->add(target - 1, value, term_);
  }
}

void DistributedStep::stepped() {
  if (setting_.gradients != nullptr) setting_.gradients->exchange().progress();
}

// Agreeing ----------------------------------------------------------------------------------------

void DistributedStep::agree(const std::exception_ptr& failure) {
  is_refused_ = true;  // unless nothing is thrown here
  RankWords words{};
  for (const std::string& line : options_in_lines()) {
    words[before::options] = hash_bytes(std::as_bytes(std::span(line)), words[before::options]);
  }
  words[before::parameter_types] = digest_of(input_.parameters);
  words[before::structure] = first_.structure;
  words[before::shapes] = first_.shapes;
  if (failure == nullptr) {
    words[before::shard_types] = digest_of(parts_[0]);
    words[before::examples] = static_cast<std::uint64_t>(
        std::accumulate(examples_.begin(), examples_.end(), std::int64_t{0}));
    words[before::first_examples] = static_cast<std::uint64_t>(examples_[0]);
  }
  RankGradients* const gradients = setting_.gradients;
  words[before::laid_out] = gradients != nullptr && gradients->is_laid_out() ? 1 : 0;
  if (input_.verifies) words[before::parameters] = hash_of(input_.parameters);
  const Stopwatch agreeing;
  const std::vector<RankWords> said = setting_.link.meet(RankCall::step, words, failure);
  agreeing_ = agreeing.seconds();
  compare(said);
  set_weights(said);
  if (!say_same(said, before::laid_out) && gradients->is_laid_out()) {
    gradients->forget_order();
    gradients->begin();
  }
  is_refused_ = false;
  is_agreed_ = true;
}

void DistributedStep::compare(const std::vector<RankWords>& said) {
  const bool have_shapes = say_same(said, before::shard_types);
  const bool is_same = say_same(said, before::options) && say_same(said, before::parameter_types) &&
                       say_same(said, before::structure) &&
                       (!have_shapes || say_same(said, before::shapes));
  if (!is_same) {
    std::vector<std::string> lines = options_in_lines();
    append_lines(input_.parameters, lines);
    append_lines(*tape_, first_.nodes, have_shapes, lines);
    setting_.link.differ(lines, "record one program on all ranks, with the same options");
  }
  if (!say_same(said, before::parameters)) blame_parameters(setting_.link, input_.parameters);
}

void DistributedStep::set_weights(const std::vector<RankWords>& said) {
  if (setting_.options.reduction == LossReduction::sum) {
    weights_ = {std::vector<double>(said.size(), 1), 1};
  } else {
    // In terms of the first part of all, so that the bits are those of an accumulator.
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

std::vector<std::string> DistributedStep::options_in_lines() const {
  const DistributedOptions& options = setting_.options;
  const double scale = setting_.scaler != nullptr ? setting_.scaler->scale() : 1;
  return {"bucket_bytes = " + std::to_string(options.bucket_bytes),
          std::string("deterministic = ") + (options.deterministic ? "true" : "false"),
          std::string("reduction = ") + (options.reduction == LossReduction::mean ? "mean" : "sum"),
          "verify_every = " + std::to_string(options.verify_every),
          "accumulation = " + std::to_string(micro_batches()),
          "loss scale = " + std::to_string(scale),
          input_.is_whole ? "gradients()" : "gradients_of_shard()"};
}

// The end -----------------------------------------------------------------------------------------

Gradients DistributedStep::end(const std::exception_ptr& failure) {
  Report report = setting_.replica.take_report();
  RankWords words{};
  words[after::micro_batches] = others_;
  words[after::loss] = std::bit_cast<std::uint64_t>(loss_);
  const std::vector<RankWords> said = setting_.link.meet(RankCall::end_of_step, words, failure);
  if (!say_same(said, after::micro_batches)) {
    setting_.link.differ({{"micro-batches that record " + std::to_string(others_)}},
                         "record one program in all micro-batches");
  }
  RankReport own{.examples = std::accumulate(examples_.begin(), examples_.end(), std::int64_t{0}),
                 .agreeing_seconds = agreeing_};
  if (setting_.strategy.memory_budget != unlimited) report.budget = setting_.strategy.memory_budget;
  report.micro_batches = micro_batches();
  if (setting_.gradients != nullptr) {
    const Bytes sums = setting_.gradients->bytes();
    for (Bytes* peak : {&report.predicted_peak, &report.measured_peak, &report.predicted_live_peak,
                        &report.measured_live_peak, &report.keep_all_peak}) {
      *peak += sums;
    }
    const BucketExchange& exchange = setting_.gradients->exchange();
    own.bytes = setting_.gradients->sent();
    own.buckets = setting_.gradients->buckets();
    own.started_early = exchange.started_early();
    own.ended_early = exchange.ended_early();
    own.overlapped_seconds = exchange.overlapped_seconds();
    own.waiting_seconds = waiting_;
  }
  own.predicted_peak = report.predicted_peak;
  own.measured_peak = report.measured_peak;
  reports_ = setting_.link.gather(own);
  return setting_.arena.execute([&] { return finish(said, std::move(report)); });
}

Gradients DistributedStep::finish(const std::vector<RankWords>& said, Report report) {
  Tensor loss = last_->loss();
  std::vector<Gradients::Entry> entries(last_->begin(), last_->end());
  if (setting_.gradients != nullptr) {
    double sum = 0;
    for (std::size_t r = 0; r < said.size(); ++r) {
      sum += weights_.weights[r] * std::bit_cast<double>(said[r][after::loss]);
    }
    loss = Tensor::full(loss.shape(), sum / weights_.divisor, loss.dtype());
    setting_.gradients->round();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      entries[i].gradient = setting_.gradients->gradient(i);
    }
  }
  LossScaler* const scaler = setting_.scaler;
  if (scaler == nullptr) return Gradients(std::move(loss), std::move(entries), std::move(report));
  report.loss_scale = scaler->scale();
  report.overflowed = !scaler->unscale(Gradients(loss, entries, report));
  return Gradients(Tensor::scalar(scaler->loss(), loss.dtype()), std::move(entries),
                   std::move(report));
}

}  // namespace palimpsest
