#include "strategy/evaluators.h"

#include "strategy/present.h"

namespace palimpsest {

void EngineEvaluator::compute(Tape& tape, std::uint32_t value) { compute(tape, {&value, 1}); }

void EngineEvaluator::compute(Tape& tape, std::span<const ValueId> values) {
  std::vector<ValueId> targets(values.begin(), values.end());
  // Without a budget nothing forces out what was asked for before.
  if (options_.memory_budget == unlimited) append_present(tape, targets);
  engine_.evaluate(tape, targets, options_);
}

namespace {

class LazyEvaluator : public EngineEvaluator {
 public:
  using EngineEvaluator::EngineEvaluator;
  void on_record(Tape&, std::uint32_t) override {}
};

class EagerEvaluator : public EngineEvaluator {
 public:
  using EngineEvaluator::EngineEvaluator;

  void on_record(Tape& tape, std::uint32_t node) override {
    std::vector<ValueId> missing;  // dropped by a backward meanwhile
    for (const ValueId input : tape.inputs(node)) {
      if (!tape.has_value(input)) missing.push_back(input);
    }
    if (!missing.empty()) compute(tape, missing);
    engine().compute_now(tape, node, options());
  }
};

}  // namespace

std::shared_ptr<Evaluator> lazy(RunOptions options) {
  return std::make_shared<LazyEvaluator>(std::move(options));
}

std::shared_ptr<Evaluator> eager(RunOptions options) {
  if (options.memory_budget != unlimited || options.planner != nullptr) {
    throw ArgumentError(
        "[eager] an eager tape keeps every value until backward; give the budget and the planner "
        "to backward(), or use lazy()");
  }
  return std::make_shared<EagerEvaluator>(std::move(options));
}

}  // namespace palimpsest
