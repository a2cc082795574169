#include "strategy/execution/precision/precise_evaluator.h"
#include "strategy/evaluators/engine.h"
#include "strategy/execution/precision/precise.h"

#include <string>

namespace palimpsest {

PreciseEvaluator::PreciseEvaluator(const Precision& precision,
                                   std::shared_ptr<EngineEvaluator> inner)
    : EngineEvaluator(inner->options(), inner->shared_engine()),
      precision_(precision),
      inner_(std::move(inner)) {}

PreciseEvaluator::Computed& PreciseEvaluator::computed(Tape& tape) {
  const auto found = computed_.find(&tape);
  if (found != computed_.end()) return *found->second;
  for (ValueId value = 0; value < tape.value_count(); ++value) tape.drop(value);
  if (spare_ == nullptr) spare_ = std::make_unique<Computed>(precision_, inner_);
  return *computed_.try_emplace(&tape, std::move(spare_)).first->second;
}

void PreciseEvaluator::on_record(Tape& tape, std::uint32_t) {
  Translation& translation = computed(tape).translation;
  // Counterparts made among temporary nodes would be removed without the translation's knowledge.
  // They are made in a region, when a value is asked for.
  if (!translation.tape().is_temporary()) translation.follow(tape);
}

void PreciseEvaluator::take_back(Tape& tape, Computed& computed) {
  for (const ValueId value : computed.lent) {
    if (value < tape.value_count()) tape.drop(value);
  }
  computed.lent.clear();
}

void PreciseEvaluator::compute(Tape& tape, std::span<const ValueId> values) {
  Computed& own = computed(tape);
  take_back(tape, own);
  const auto region = hold_temporary(tape);
  own.translation.follow(tape);
  for (const ValueId value : values) {
    if (own.translation.knows(value)) continue;
    throw TapeError("[precise] CustomDefinition::narrow asks for the value of " +
                    tape.describe(tape.producer(value)) +
                    ", which is not computed before its own operation; let it read its inputs");
  }
  own.translation.follow_names(tape);
  std::vector<Var> made;
  std::vector<ValueId> missing;
  Tape& narrow = own.translation.tape();
  for (const ValueId value : values) {
    made.push_back(own.translation.in_dtype(value, tape.dtype(value)));
    if (!narrow.has_value(made.back().id())) missing.push_back(made.back().id());
  }
  if (missing.size() > 1) inner_->compute(narrow, missing);
  for (std::size_t i = 0; i < values.size(); ++i) {
    tape.set_buffer(values[i], made[i].value().buffer());
    own.lent.push_back(values[i]);
  }
}

Buffer PreciseEvaluator::room_beside(Tape& tape, Bytes held,
                                     const std::function<Bytes(Bytes budget)>& plan) {
  Computed& own = computed(tape);
  take_back(tape, own);
  return inner_->room_beside(own.translation.tape(), held, plan);
}

std::vector<Var> PreciseEvaluator::computed_for(Tape& tape, std::span<const Var> values) {
  Computed& own = computed(tape);
  take_back(tape, own);
  own.translation.follow(tape);
  own.translation.follow_names(tape);
  std::vector<Var> computed;
  for (const Var& value : values) {
    computed.push_back(own.translation.in_dtype(value.id(), value.dtype()));
  }
  return computed;
}

std::shared_ptr<const void> PreciseEvaluator::hold_temporary(Tape& tape) {
  Translation& translation = computed(tape).translation;
  // A user's VJP may ask for values while nodes are recorded that are removed after the run.
  if (!tape.is_temporary() && !translation.tape().is_temporary()) return nullptr;
  return std::make_shared<const Translation::Temporary>(translation);
}

void PreciseEvaluator::set_memory_budget(Bytes budget) {
  inner_->set_memory_budget(budget);
  EngineEvaluator::set_memory_budget(budget);
}

void PreciseEvaluator::on_clear(Tape& tape) noexcept {
  const auto found = computed_.find(&tape);
  if (found == computed_.end()) return;
  take_back(tape, *found->second);
  found->second->translation.clear();
  if (spare_ == nullptr) spare_ = std::move(found->second);
  computed_.erase(found);
}

std::shared_ptr<EngineEvaluator> precise(Precision precision, std::shared_ptr<Evaluator> inner) {
  require_valid(precision, "precise");
  if (inner == nullptr) inner = lazy();
  const auto engine = std::dynamic_pointer_cast<EngineEvaluator>(inner);
  if (engine == nullptr) {
    throw ArgumentError(
        "[precise] the evaluator has no engine; give lazy(), hybrid(), eager() or none");
  }
  if (std::dynamic_pointer_cast<PreciseEvaluator>(inner) != nullptr) {
    throw ArgumentError(
        "[precise] the evaluator already has a precision; give the evaluator inside it");
  }
  return std::make_shared<PreciseEvaluator>(precision, engine);
}

}  // namespace palimpsest
