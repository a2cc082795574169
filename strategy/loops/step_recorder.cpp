#include "strategy/loops/step_recorder.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "autodiff/evaluator.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/recording_guards.h"

namespace palimpsest {

/// Computes values for a body that looks at them. The user may keep these values.
class StepRecorder::Looking final : public Evaluator {
 public:
  Looking(RecordedStep& made, const Look& look, const InnerRewrite& rewrite, Round round)
      : made_(made), look_(look), rewrite_(rewrite), round_(round) {}

  void on_record(Tape&, std::uint32_t) override {}
  void on_clear(Tape&) noexcept override {}
  void compute(Tape& tape, std::span<const std::uint32_t> values) override {
    made_.follows_values = true;
    std::vector<Tensor> seen;
    for (const ValueId value : values) {
      seen.emplace_back(tape.shape(value), tape.dtype(value));
      forget(tape);
      RecordedStep until = made_;
      until.next.clear();
      until.outputs = {value};
      const RecordedStep run = until.rewritten(rewrite_);
      look_(run, run.outputs[0], seen.back().raw());
    }
    for (std::size_t i = 0; i < values.size(); ++i) tape.set_buffer(values[i], seen[i].buffer());
  }
  InnerRewrite inner() const override { return rewrite_; }
  Round round() const { return round_; }
  /// Drops all values except constants: a planned step has no others. It visits the whole tape,
  /// since ids in a checkpoint may soon belong to other values.
  void forget(Tape& tape) {
    for (ValueId value = 0; value < tape.value_count(); ++value) tape.drop(value);
    for (const ValueId argument : made_.arguments()) tape.set_buffer(argument, nullptr);
  }

 private:
  RecordedStep& made_;
  const Look& look_;
  const InnerRewrite& rewrite_;
  Round round_;
};

std::vector<ValueId> RecordedStep::arguments() const {
  std::vector<ValueId> all = state;
  all.insert(all.end(), inputs.begin(), inputs.end());
  all.insert(all.end(), captured.begin(), captured.end());
  all.push_back(number);
  return all;
}

RecordedStep RecordedStep::rewritten(const InnerRewrite& rewrite) const {
  RecordedStep run = *this;
  if (rewrite == nullptr) return run;
  std::vector<std::vector<ValueId>*> lists{&run.state, &run.inputs, &run.captured, &run.next,
                                           &run.outputs};
  InnerProgram inner{tape, {number}};
  for (const auto* list : lists) {
    inner.values.insert(inner.values.end(), list->begin(), list->end());
  }
  inner = rewrite(std::move(inner));
  run.tape = inner.tape;
  run.number = inner.values[0];
  auto value = inner.values.begin() + 1;
  for (auto* list : lists) {
    for (ValueId& each : *list) each = *value++;
  }
  return run;
}

StepBody step_body(Tape& tape, LoopBody body, LoopBody condition, const Where& where) {
  const RandomStream stream = tape.fresh_stream();
  return {.body = std::move(body),
          .condition = std::move(condition),
          .outer = &tape,
          .seed = seed_of({stream.seed, 0, stream.node}),
          .where = where,
          .rewrite = inner_of(tape.evaluator()),
          .generation = stream.generation};
}

RecordedStep StepRecorder::record(const LoopBody& f, std::span<const ValueType> state,
                                  std::span<const ValueType> inputs, std::int64_t step,
                                  const Look& look) {
  step_ = step;
  for (;;) {
    is_late_ = false;
    try {
      RecordedStep made = record_once(f, state, inputs, look);
      if (!is_late_) return made;
      // The body caught the exception.
    } catch (const LateCapture& late) {
      if (late.recorder != this) throw;
    } catch (...) {
      if (!is_late_) throw;  // otherwise the body threw it in place of the other one
    }
    // The leaf would have been removed from the tape again, so it must exist from the start: record
    // again.
  }
}

namespace {

/// Whether a node may call a function of the user again: a loop, or a custom operation.
bool keeps_functions(const Tape& tape) {
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    if (tape.operation(node).has_state_budget || !tape.attributes(node).may_come_again()) {
      return true;
    }
  }
  return false;
}

/// Ends in the reverse order.
class Redirections {
 public:
  Redirections() = default;
  ~Redirections() {
    while (!all_.empty()) all_.pop_back();
  }
  Redirections(const Redirections&) = delete;
  Redirections& operator=(const Redirections&) = delete;

  template <class... Arguments>
  void add(Arguments&... arguments) {
    all_.push_back(std::make_unique<RedirectedRecording>(arguments...));
  }
  /// See `RedirectedRecording::value_from_further`.
  Var value_from_further() const {
    for (const auto& each : all_) {
      if (each->value_from_further().defined()) return each->value_from_further();
    }
    return {};
  }

 private:
  std::vector<std::unique_ptr<RedirectedRecording>> all_;
};

}  // namespace

RecordedStep StepRecorder::record_once(const LoopBody& f, std::span<const ValueType> state,
                                       std::span<const ValueType> inputs, const Look& look) {
  made_ = RecordedStep();
  Tape& tape = *made_.tape;
  // A condition draws other random numbers than the body.
  tape.set_seed(&f == &body_.condition ? ~body_.seed : body_.seed);
  std::vector<Var> states;
  std::vector<Var> parts;
  for (const ValueType& type : state) {
    made_.state.push_back(leaf(type));
    states.push_back(tape.var(made_.state.back()));
  }
  for (const ValueType& type : inputs) {
    made_.inputs.push_back(leaf(type));
    parts.push_back(tape.var(made_.inputs.back()));
  }
  made_.number = leaf({Shape{}, DType::i64});
  for (const Var& value : captured_) made_.captured.push_back(leaf(value.type()));
  const auto looking = std::make_shared<Looking>(made_, look, body_.rewrite, round_);
  tape.set_evaluator(looking);
  LoopStep recorded;
  {
    const auto stands = [this](const Var& value) { return stand_in(value); };
    const auto original = [this](const Var& leaf) { return original_of(leaf.id()); };
    Redirections within;
    within.add(*body_.outer, tape, stands, original);
    for (Tape* const origin : body_.origins) within.add(*origin, tape, stands);
    recorded = f(states, parts, StepNumber(*this));
    if (const Var value = within.value_from_further(); value.defined()) from_further_ = value;
    for (std::vector<Var>* list : {&recorded.state, &recorded.outputs}) {
      for (Var& value : *list) value = tape.here(value, body_.name(), body_.where);
    }
  }
  if (!tape.updates().empty()) {
    throw ArgumentError(body_.name(),
                        "the body updates " + std::to_string(tape.updates().size()) +
                            " tensors, as running statistics do, which a loop cannot do once per "
                            "run; make them part of the state",
                        body_.where);
  }
  looking->forget(tape);
  tape.set_evaluator(nullptr);
  for (const Var& value : recorded.state) made_.next.push_back(value.id());
  for (const Var& value : recorded.outputs) made_.outputs.push_back(value.id());
  // Handles that the body leaked are errors from now on. Functions that it recorded may read some
  // of them when they are called again.
  if (!keeps_functions(tape)) tape.expire_handles();
  const RecordedStep made = std::move(made_);
  return made.rewritten(body_.rewrite);
}

bool StepRecorder::records(const Tape& tape) {
  return dynamic_cast<const Looking*>(tape.evaluator().get()) != nullptr;
}

Round StepRecorder::round_on(const Tape& tape) {
  const auto* const looking = dynamic_cast<const Looking*>(tape.evaluator().get());
  return looking != nullptr ? looking->round() : Round();
}

ValueId StepRecorder::leaf(const ValueType& type) {
  return made_.tape->placeholder(type, body_.where).id();
}

Var StepRecorder::stand_in(Var value) {
  for (const auto& [each, other] : body_.aliases) {
    if (each == value) value = other;
  }
  const auto known = std::find(captured_.begin(), captured_.end(), value);
  const auto index = known - captured_.begin();
  if (known == captured_.end()) {
    captured_.push_back(value);
    if (made_.tape->is_temporary()) {
      is_late_ = true;
      throw LateCapture{this};
    }
    made_.captured.push_back(leaf(value.type()));
  }
  return made_.tape->var(made_.captured[static_cast<std::size_t>(index)]);
}

Var StepRecorder::original_of(ValueId leaf) const {
  const auto found = std::ranges::find(made_.captured, leaf);
  if (found == made_.captured.end()) return {};
  return captured_[static_cast<std::size_t>(found - made_.captured.begin())];
}

StepNumber::operator std::int64_t() const {
  recorder_->made_.follows_number = true;
  return recorder_->step_;
}

Var StepNumber::as(DType dtype) const {
  const RecordedStep& made = recorder_->made_;
  return cast(made.tape->var(made.number), dtype, recorder_->body_.where);
}

}  // namespace palimpsest
