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
  // The other tape may run as it is recorded, and functions of its loops refer to this one.
  const InUse::Use run(tape.in_use(), tape_use::computing, "precise");
  computed(tape).translation.follow(tape);
}

void PreciseEvaluator::take_back(Tape& tape, Computed& computed) {
  for (const ValueId value : computed.lent) {
    if (value < tape.value_count()) tape.drop(value);
  }
  computed.lent.clear();
}

void PreciseEvaluator::compute(Tape& tape, std::uint32_t value) {
  Computed& own = computed(tape);
  take_back(tape, own);
  std::optional<Translation::Temporary> region;
  // A user's VJP may ask for a value while nodes are recorded that are removed after the run.
  const bool is_temporary = tape.is_temporary() || own.translation.tape().is_temporary();
  if (is_temporary) region.emplace(own.translation);
  own.translation.follow(tape);
  own.translation.follow_names(tape);
  const Tensor made = own.translation.in_dtype(value, tape.dtype(value)).value();
  tape.set_buffer(value, made.buffer());
  own.lent.push_back(value);
}

std::vector<Var> PreciseEvaluator::computed_for(Tape& tape, std::span<const Var> values) {
  if (tape.is_temporary()) {
    throw TapeError(
        "[precise] a traced function evaluates several values of its tape at once; evaluate them "
        "one by one, or outside the function");
  }
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
