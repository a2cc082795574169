#include "strategy/loops/loop.h"

#include <string>

#include "autodiff/gradient.h"
#include "checkpoint/tape_graph.h"
#include "strategy/base/cache_limit.h"
#include "strategy/loops/active_components.h"
#include "strategy/loops/kept_values.h"
#include "strategy/loops/loop_budgets.h"
#include "strategy/loops/loop_operation.h"

namespace palimpsest {
namespace {

std::vector<ValueType> types_of(const Tape& tape, std::span<const ValueId> values) {
  std::vector<ValueType> types;
  for (const ValueId value : values) types.push_back(tape.type(value));
  return types;
}

std::vector<ValueType> chosen(std::span<const ValueType> types,
                              std::span<const std::size_t> places) {
  std::vector<ValueType> some;
  for (const std::size_t place : places) some.push_back(types[place]);
  return some;
}

/// The components of the state to hold for a derivative of a step.
std::vector<bool> components_to_hold(const Loop& loop, const StepPrograms& backward) {
  if (!is_analysed(loop)) return std::vector<bool>(loop.state_count(), true);
  std::vector<bool> components =
      components_read(backward.tape(), loop.step().state, backward.interface().results);
  add_components_needed(loop, components);
  return components;
}

/// A copy on which more can be recorded, with the values of its constants.
std::shared_ptr<Tape> copy_of(const Tape& tape) {
  const auto copy = std::make_shared<Tape>();
  copy->copy_nodes(tape);
  copy->set_seed(tape.seed());
  for (ValueId value = 0; value < tape.value_count(); ++value) {
    if (tape.has_value(value)) copy->set_buffer(value, tape.buffer(value));
  }
  return copy;
}

}  // namespace

void require_state(const RecordedStep& step, const StepBody& body) {
  if (step.next.size() != step.state.size()) {
    throw ArgumentError(body.name(),
                        "the body returns a state of " + std::to_string(step.next.size()) +
                            " values, but takes one of " + std::to_string(step.state.size()) +
                            "; return the state for the next step",
                        body.where);
  }
  for (std::size_t i = 0; i < step.state.size(); ++i) {
    const ValueType given = step.tape->type(step.state[i]);
    const ValueType made = step.tape->type(step.next[i]);
    if (made == given) continue;
    const std::string text = "the body returns value " + std::to_string(i) + " of the state as " +
                             to_string(made) + ", but takes it as " + to_string(given) +
                             "; return the same type";
    if (made.shape != given.shape) throw ShapeError(body.name(), text, body.where);
    throw DTypeError(body.name(), text, body.where);
  }
  for (NodeId node = 0; node < step.tape->node_count(); ++node) {
    if (!step.tape->is_parameter(node)) continue;
    throw ArgumentError(
        body.name(),
        "the body records parameter " + step.tape->describe(node) +
            ", whose gradient would be lost; record it before the loop, for an nn layer with "
            "parameters.record(tape), and use it in the body",
        step.tape->where(node));
  }
}

Loop::Loop(StepBody body, RecordedStep step, std::optional<RecordedStep> condition,
           std::vector<Var> captured, std::uint32_t steps, const LoopOptions& options,
           const LoopPlace& place)
    : body_(std::move(body)),
      step_(std::move(step)),
      condition_(std::move(condition)),
      captured_(std::move(captured)),
      steps_(steps),
      options_(options),
      state_(types(step_.state)),
      forward_(step_.tape, std::make_shared<std::mutex>(), program_of(step_, true)) {
  if (condition_) {
    goes_on_.emplace(condition_->tape, std::make_shared<std::mutex>(),
                     program_of_outputs(*condition_));
  }
  if (!options.resume.empty()) {
    resume_ = std::make_unique<const LoopResume>(options_, body_, place);
  }
  held();  // throws for invalid options of a disk
}

Loop::~Loop() = default;

std::optional<DiskCosts> Loop::given_costs() const {
  // The schedule of an earlier process followed from what it measured.
  if (options_.disk_costs || resume_ == nullptr) return options_.disk_costs;
  return resume_->found_costs();
}

const HeldComponents& Loop::held(std::uint64_t key) const {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<const HeldComponents>& held = held_[key];
  if (held == nullptr) {
    held =
        std::make_unique<const HeldComponents>(*this, HeldComponents::with_key(key, state_count()));
  }
  return *held;
}

const KeptValues& Loop::keep(const std::vector<ValueId>& values) const {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<const KeptValues>& kept = kept_[KeptValues::key_of(values)];
  if (kept == nullptr) kept = std::make_unique<const KeptValues>(*this, values);
  return *kept;
}

const KeptValues& Loop::kept(std::uint64_t key) const {
  const std::lock_guard lock(mutex_);
  const auto known = kept_.find(key);
  internal_check(known != kept_.end(), "a loop has not chosen the values that it is to keep");
  return *known->second;
}

std::vector<ValueType> Loop::types(std::span<const ValueId> values) const {
  return types_of(*step_.tape, values);
}

LoopGradient::LoopGradient(std::shared_ptr<const Loop> loop, Requested requested,
                           const Where& where)
    : loop_(std::move(loop)), requested_(std::move(requested)), where_(where) {
  const RecordedStep& step = loop_->step();
  const std::vector<ValueType> states = loop_->types(step.state);
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (requested_.carried[i]) carried_.push_back(i);
  }
  for (std::size_t i = 0; i < requested_.captured.size(); ++i) {
    if (requested_.captured[i]) summed_.push_back(i);
  }
  adjoints_ = StateBlock(chosen(states, carried_));
  sums_ = StateBlock(chosen(loop_->types(step.captured), summed_));
  RecordedStep copy = step;
  copy.tape = copy_of(*step.tape);
  StepGradient gradient = differentiate(copy);
  untouched_ = std::move(gradient.untouched);
  backward_.emplace(copy.tape, std::make_shared<std::mutex>(), std::move(gradient.program));
  held_ = components_to_hold(*loop_, *backward_);
  if (may_keep_values(*loop_))
    values_to_keep_ = palimpsest::values_to_keep(step, *backward_, held_);
  if (loop_->resume() != nullptr) number_ = loop_->resume()->take_number();
}

LoopGradient::~LoopGradient() {
  if (loop_->resume() != nullptr) loop_->resume()->give_back_number(number_);
}

const StepPrograms& LoopGradient::backward(const KeptValues& kept) const {
  const std::lock_guard lock(mutex_);
  const auto known = from_kept_.find(kept.key);
  if (known != from_kept_.end()) return known->second;
  auto [tape, interface] = from_kept_values(kept, loop_->step(), *backward_, held_);
  return from_kept_
      .try_emplace(kept.key, std::move(tape), std::make_shared<std::mutex>(), std::move(interface))
      .first->second;
}

StepGradient LoopGradient::differentiate(const RecordedStep& step) const {
  Tape& tape = *step.tape;
  StepGradient made;
  made.program = {step.arguments(), {}, tape.node_count()};
  std::vector<Var> ys;
  std::vector<Var> xs;
  std::vector<Var> seeds;
  const auto seed = [&](ValueId y) {
    ys.push_back(tape.var(y));
    seeds.push_back(tape.placeholder(tape.type(y), where_));
  };
  for (const std::size_t i : carried_) {
    seed(step.next[i]);
    xs.push_back(tape.var(step.state[i]));
  }
  for (std::size_t i = 0; i < step.outputs.size(); ++i) {
    if (requested_.outputs[i]) seed(step.outputs[i]);
  }
  for (std::size_t i = 0; i < step.inputs.size(); ++i) {
    if (requested_.inputs[i]) xs.push_back(tape.var(step.inputs[i]));
  }
  for (const std::size_t i : summed_) {
    // The previous sum comes first, as it does where steps are recorded one by one.
    seed(step.captured[i]);
    xs.push_back(tape.var(step.captured[i]));
  }
  const std::vector<Var> gradients = vjp(ys, xs, seeds, where_);
  for (const Var& each : seeds) made.program.arguments.push_back(each.id());
  for (const Var& each : gradients) made.program.results.push_back(each.id());
  for (std::size_t i = 0; i < carried_.size(); ++i) {
    made.program.donations.push_back({seeds[i].id(), gradients[i].id()});
  }
  for (std::size_t i = 0; i < summed_.size(); ++i) {
    const std::size_t from_end = summed_.size() - i;
    const Var& before = seeds[seeds.size() - from_end];
    const Var& after = gradients[gradients.size() - from_end];
    made.program.donations.push_back({before.id(), after.id()});
    made.untouched.push_back(after == before);
  }
  return made;
}

}  // namespace palimpsest
