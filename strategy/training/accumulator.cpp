#include "strategy/training/accumulator.h"

#include <algorithm>

#include "autodiff/enumerators.h"
#include "autodiff/number_text.h"
#include "autodiff/parallel.h"
#include "strategy/training/gradient_sums.h"
#include "strategy/training/micro_batch_weights.h"

namespace palimpsest {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw ArgumentError("[accumulator] " + message);
}

std::string in_quotes(std::string_view name) { return "'" + std::string(name) + "'"; }

std::string counted(std::int64_t n, const std::string& what, const char* plural = "s") {
  return std::to_string(n) + " " + what + (n == 1 ? "" : plural);
}

template <class Parameters, class F>
void in_parallel(Parameters& parameters, F f) {
  parallel_chunks(std::ssize(parameters), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) f(parameters[static_cast<std::size_t>(i)]);
  });
}

[[noreturn]] void refuse_missing(const std::string& name) {
  refuse("the micro-batch has no gradient of " + in_quotes(name) +
         "; give one, with zeros if the loss does not depend on the parameter");
}

}  // namespace

GradientAccumulator::GradientAccumulator(AccumulatorOptions options)
    : options_(options),
      weights_(std::make_shared<MicroBatchWeights>(options.normalization, options.steps)) {
  using enum GradientNormalization;
  require_enumerator(options.normalization, {sum, mean, weighted},
                     "[accumulator] AccumulatorOptions::normalization");
  if (options.steps < 1) {
    refuse("an update takes at least one micro-batch, not " + std::to_string(options.steps));
  }
  if (!(options.clip_norm > 0)) {
    refuse("the norm to clip to must be positive, not " + number_text(options.clip_norm) +
           "; leave clip_norm out to clip nothing");
  }
}

// Parameters --------------------------------------------------------------------------------------

GradientAccumulator::Parameter::Parameter(std::string own_name, const ValueType& own_type)
    : name(std::move(own_name)), type(own_type) {
  if (!is_floating(type.dtype)) {
    throw DTypeError("[accumulator] parameter " + in_quotes(name) + " is " + to_string(type) +
                     "; register only parameters of floating dtypes");
  }
  sum = Tensor(type.shape, compute_dtype(type.dtype));
  if (is_half(type.dtype)) rounded = Tensor(type.shape, type.dtype);
}

void GradientAccumulator::register_parameter(std::string name, const ValueType& type) {
  const InUse::Use use(in_use_, call_in_progress, "GradientAccumulator::register_parameter");
  if (name.empty()) refuse("a parameter, " + to_string(type) + ", has no name; give one");
  if (index_.contains(name)) refuse("there are two parameters " + in_quotes(name) + "; rename one");
  require_nothing_given();
  if (count_ > 0) {
    refuse("parameter " + in_quotes(name) + " comes after the first micro-batch of an update; " +
           "register all before it, or call reset()");
  }
  Parameter parameter(name, type);
  parameters_.reserve(parameters_.size() + 1);
  index_.emplace(std::move(name), parameters_.size());
  parameters_.push_back(std::move(parameter));
}

void GradientAccumulator::register_all(const Gradients& gradients) {
  std::vector<Parameter> parameters;
  std::map<std::string, std::size_t, std::less<>> index;
  for (const Gradients::Entry& entry : gradients) {
    const std::size_t position = parameters.size();
    const bool named = !entry.name.empty();
    const std::string own = named ? entry.name : "parameter " + std::to_string(position);
    std::string name = own;
    for (int copy = 2; index.contains(name); ++copy) name = own + " " + std::to_string(copy);
    // A name that occurs twice identifies the parameter no better than its position.
    parameters.emplace_back(name, entry.gradient.type());
    parameters.back().named = named && name == own;
    index.emplace(std::move(name), position);
  }
  parameters_ = std::move(parameters);
  index_ = std::move(index);
}

std::size_t GradientAccumulator::index_of(std::string_view name) const {
  const auto found = index_.find(name);
  if (found != index_.end()) return found->second;
  std::string known;
  constexpr std::size_t most = 8;
  for (std::size_t i = 0; i < std::min(most, parameters_.size()); ++i) {
    known += (i > 0 ? ", " : "") + in_quotes(parameters_[i].name);
  }
  if (parameters_.size() > most) known += ", …";
  refuse("unknown parameter " + in_quotes(name) + "; " +
         (known.empty() ? "call register_parameter() first" : "use one of " + known));
}

// Checks of micro-batches
// ---------------------------------------------------------------------------

void GradientAccumulator::require_fits(const Parameter& parameter, const Tensor& gradient) {
  if (!gradient.defined())
    refuse("the gradient of " + in_quotes(parameter.name) +
           " is empty; give zeros if the loss does not depend on the parameter");
  if (gradient.type() == parameter.type) return;
  const std::string message = "[accumulator] parameter " + in_quotes(parameter.name) + " is " +
                              to_string(parameter.type) + ", but its gradient is " +
                              to_string(gradient.type());
  if (gradient.shape() != parameter.type.shape) {
    throw ShapeError(message + "; give a gradient of the parameter's shape");
  }
  throw DTypeError(message + "; convert it with to()");
}

void GradientAccumulator::require_open() const {
  if (taken_ || (divided_ && count_ < options_.steps)) {
    refuse("the gradients of this update were taken; call reset() to begin the next");
  }
  if (count_ == options_.steps) {
    refuse("the update has all of its " + counted(count_, "micro-batch", "es") +
           "; take its gradients() and call reset()");
  }
}

void GradientAccumulator::require_parameters() const {
  if (parameters_.empty()) refuse("there are no parameters; call register_parameter() first");
}

void GradientAccumulator::require_nothing_given() const {
  const auto given = std::count_if(parameters_.begin(), parameters_.end(),
                                   [](const Parameter& p) { return p.given.defined(); });
  if (given == 0) return;
  refuse("accumulate() was given " + std::to_string(given) + " of " +
         counted(std::ssize(parameters_), "parameter") +
         " of a micro-batch; end it with step(), or discard() it");
}

void GradientAccumulator::require_examples(std::int64_t examples) const {
  if (examples < 1) {
    refuse("a micro-batch has at least one example, not " + std::to_string(examples));
  }
  if (options_.normalization == GradientNormalization::mean && count_ > 0 &&
      examples != first_examples_) {
    refuse("a micro-batch of " + counted(examples, "example") + " after one of " +
           std::to_string(first_examples_) +
           ": the mean of their means is not the mean over all examples; use "
           "GradientNormalization::weighted");
  }
  if (examples > std::numeric_limits<std::int64_t>::max() - examples_) {
    refuse("a micro-batch of " + counted(examples, "example") + " after " +
           std::to_string(examples_) +
           " in the update: their number overflows; use fewer steps per update");
  }
}

void GradientAccumulator::require_same_parameters(const Gradients& gradients) const {
  const auto entries = gradients.entries();
  if (entries.size() != parameters_.size()) {
    refuse("a micro-batch has gradients of " + counted(std::ssize(entries), "parameter") +
           ", but " + std::to_string(parameters_.size()) +
           " are registered; use one accumulator per model");
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Parameter& parameter = parameters_[i];
    const std::string& name = entries[i].name;
    if (parameter.named && !name.empty() && name != parameter.name) {
      refuse("parameter " + std::to_string(i) + " of the tape is " + in_quotes(name) +
             ", but the registered one is " + in_quotes(parameter.name) +
             "; record parameters in the same order");
    }
    require_fits(parameter, entries[i].gradient);
  }
}

// Micro-batches -----------------------------------------------------------------------------------

void GradientAccumulator::accumulate(std::string_view name, const Tensor& gradient) {
  const InUse::Use use(in_use_, call_in_progress, "GradientAccumulator::accumulate");
  require_open();
  Parameter& parameter = parameters_[index_of(name)];
  require_fits(parameter, gradient);
  if (parameter.given.defined()) {
    refuse("the gradient of " + in_quotes(name) +
           " was already given in this micro-batch; end it with step(), or discard() it");
  }
  parameter.given = gradient;
}

void GradientAccumulator::discard() {
  const InUse::Use use(in_use_, call_in_progress, "GradientAccumulator::discard");
  forget_given();
}

void GradientAccumulator::forget_given() {
  for (Parameter& parameter : parameters_) parameter.given = {};
}

bool GradientAccumulator::step(std::int64_t examples) {
  const InUse::Use use(in_use_, call_in_progress, "GradientAccumulator::step");
  require_open();
  require_parameters();
  require_examples(examples);
  weights_->require_one_weight({}, examples);
  for (const Parameter& parameter : parameters_) {
    if (!parameter.given.defined()) refuse_missing(parameter.name);
  }
  prepare_sums();
  return add_given({}, examples, Taking::copies);
}

bool GradientAccumulator::step(const NamedTensors& gradients, std::int64_t examples) {
  const InUse::Use use(in_use_, call_in_progress, "GradientAccumulator::step");
  require_open();
  require_parameters();
  require_nothing_given();
  require_examples(examples);
  weights_->require_one_weight({}, examples);
  for (const auto& [name, gradient] : gradients) {
    require_fits(parameters_[index_of(name)], gradient);
  }
  for (const Parameter& parameter : parameters_) {
    if (!gradients.contains(parameter.name)) refuse_missing(parameter.name);
  }
  prepare_sums();
  for (Parameter& parameter : parameters_) {
    parameter.given = gradients.find(parameter.name)->second;
  }
  return add_given({}, examples, Taking::copies);
}

bool GradientAccumulator::step(const Gradients& gradients, std::int64_t examples) {
  const InUse::Use use(in_use_, call_in_progress, "GradientAccumulator::step");
  give(gradients, examples);
  return add_given(gradients.counts(), examples, Taking::copies);
}

bool GradientAccumulator::step_taking(Gradients gradients, std::int64_t examples) {
  const InUse::Use use(in_use_, call_in_progress, "GradientAccumulator::step_taking");
  give(gradients, examples);
  const LossCounts counts = gradients.counts();
  {
    const Gradients dropped = std::move(gradients);
  }
  return add_given(counts, examples, Taking::memory);
}

void GradientAccumulator::give(const Gradients& gradients, std::int64_t examples) {
  require_open();
  require_nothing_given();
  require_examples(examples);
  const bool has_loss = gradients.loss().defined();
  const double loss = has_loss ? gradients.loss().item() : 0;
  weights_->require_one_weight(gradients.counts(), examples);
  if (parameters_.empty() && count_ == 0) register_all(gradients);
  require_same_parameters(gradients);
  prepare_sums();
  const Report& report = gradients.report();
  const bool overflowed = report.overflowed || (report_ && report_->overflowed);
  if (!report_ || report.measured_peak > report_->measured_peak) report_ = Report(report);
  report_->overflowed = overflowed;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Gradients::Entry& entry = gradients.entries()[i];
    parameters_[i].given = entry.gradient;
    parameters_[i].var = entry.parameter;
    parameters_[i].value = entry.value;
    parameters_[i].name_on_tape = entry.name;
  }
  if (has_loss) {
    const double units = weights_->units_of(gradients.counts(), examples);
    if (units > 0) loss_ += weights_->weight_of(units) * loss;
    loss_type_ = gradients.loss().type();
    ++losses_;
  }
}

void GradientAccumulator::prepare_sums() {
  if (count_ > 0) return;  // no sum was returned since the update began
  for (Parameter& parameter : parameters_) {
    if (parameter.sum.buffer().use_count() > 1) {
      parameter.sum = Tensor(parameter.sum.shape(), parameter.sum.dtype());
    }
  }
}

bool GradientAccumulator::add_given(const LossCounts& counts, std::int64_t examples,
                                    Taking taking) {
  const double units = weights_->units_of(counts, examples);
  const double weight = weights_->weight_of(units);
  const bool is_first = count_ == 0;
  const bool has_weight = weights_->has_weight();
  if (is_first) first_examples_ = examples;
  ++count_;
  examples_ += examples;
  weights_->add(counts, examples);
  ++totals_.micro_batches;
  totals_.effective_batch = examples_;
  const bool is_due = count_ == options_.steps;
  const double by = is_due ? weights_->divisor() : 1;
  in_parallel(parameters_, [&](Parameter& parameter) {
    Tensor& given = parameter.given;
    if (has_weight && units > 0) {
      add_to_sum(parameter.sum, given, weight, by);
    } else if (!is_first && !(units > 0)) {  // without targets
      divide(parameter.sum, by);
    } else if (taking == Taking::memory && given.type() == parameter.sum.type() &&
               given.buffer().use_count() == 1) {
      parameter.sum = std::move(given);
    } else {
      begin_sum(parameter.sum, given);
    }
  });
  divided_ = is_due;
  forget_given();
  return is_due;
}

// Updates -----------------------------------------------------------------------------------------

void GradientAccumulator::require_accumulated() const {
  require_nothing_given();
  if (count_ == 0) refuse("nothing was accumulated; call step() to add a micro-batch");
}

Tensor GradientAccumulator::normalised_copy(const Parameter& parameter) const {
  const Tensor copy = parameter.sum.clone();
  if (!divided_) divide(copy, weights_->divisor());
  return copy;
}

double GradientAccumulator::norm_midway() const {
  return joint_norm(parameters_.size(),
                    [&](std::size_t i) { return normalised_copy(parameters_[i]); });
}

void GradientAccumulator::finish() {
  if (taken_) return;
  require_accumulated();
  for (Parameter& parameter : parameters_) {
    if (parameter.rounded.buffer().use_count() > 1) {
      parameter.rounded = Tensor(parameter.type.shape, parameter.type.dtype);
    }
  }
  if (!divided_) {
    const double by = weights_->divisor();
    in_parallel(parameters_, [&](const Parameter& parameter) { divide(parameter.sum, by); });
    divided_ = true;
  }
  // As `clip_by_norm`. Nothing after the norm allocates.
  norm_ = joint_norm(parameters_.size(), [&](std::size_t i) { return parameters_[i].sum; });
  if (norm_ > options_.clip_norm) {
    for (const Parameter& parameter : parameters_) {
      divide(parameter.sum, norm_ / options_.clip_norm);
    }
  }
  in_parallel(parameters_, [&](const Parameter& parameter) {
    if (parameter.rounded.defined()) begin_sum(parameter.rounded, parameter.sum);
  });
  taken_ = true;
  ++totals_.updates;
}

Gradients GradientAccumulator::gradients() {
  const InUse::Use use(in_use_, call_in_progress, "GradientAccumulator::gradients");
  if (count_ > 0 && !report_) {
    refuse(
        "no micro-batch was given as Gradients, so there are no parameters to update; call "
        "gradient(name)");
  }
  finish();
  std::vector<Gradients::Entry> entries;
  for (const Parameter& parameter : parameters_) {
    entries.push_back(
        {parameter.var, parameter.gradient(), parameter.value, parameter.name_on_tape});
  }
  Tensor loss;
  // Without targets the mean of all micro-batches is 0/0.
  const double mean = weights_->has_weight() ? loss_ / weights_->divisor()
                                             : std::numeric_limits<double>::quiet_NaN();
  if (losses_ == count_) loss = Tensor::full(loss_type_.shape, mean, loss_type_.dtype);
  return Gradients(std::move(loss), std::move(entries), *report_);
}

Tensor GradientAccumulator::gradient(std::string_view name) {
  const InUse::Use use(in_use_, call_in_progress, "GradientAccumulator::gradient");
  const Parameter& parameter = parameters_[index_of(name)];
  if (!is_midway()) {
    finish();
    return parameter.gradient();
  }
  require_accumulated();
  const Tensor copy = normalised_copy(parameter);
  if (options_.clip_norm < std::numeric_limits<double>::infinity()) {
    const double norm = norm_midway();
    if (norm > options_.clip_norm) divide(copy, norm / options_.clip_norm);
  }
  return copy.to(parameter.type.dtype);
}

double GradientAccumulator::norm() {
  const InUse::Use use(in_use_, call_in_progress, "GradientAccumulator::norm");
  if (is_midway()) {
    require_accumulated();
    return norm_midway();
  }
  finish();
  return norm_;
}

void GradientAccumulator::reset() {
  const InUse::Use use(in_use_, call_in_progress, "GradientAccumulator::reset");
  forget_given();
  for (Parameter& parameter : parameters_) {
    parameter.var = {};
    parameter.value = {};
    parameter.name_on_tape.clear();
  }
  count_ = 0;
  weights_->reset();
  examples_ = 0;
  divided_ = false;
  taken_ = false;
  losses_ = 0;
  loss_ = 0;
  report_.reset();
}

AccumulatorStatistics GradientAccumulator::statistics() const {
  AccumulatorStatistics statistics = totals_;
  statistics.accumulation_steps = options_.steps;
  statistics.parameters = std::ssize(parameters_);
  for (const Parameter& parameter : parameters_) {
    statistics.elements += parameter.sum.elements();
    statistics.buffers += parameter.sum.bytes();
    if (parameter.rounded.defined()) statistics.buffers += parameter.rounded.bytes();
  }
  return statistics;
}

}  // namespace palimpsest
