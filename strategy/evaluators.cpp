#include "strategy/evaluators.h"

namespace palimpsest {

void EngineEvaluator::compute(Tape& tape, std::uint32_t value) {
  engine_.evaluate(tape, {&value, 1}, options_);
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
    for (const ValueId input : tape.inputs(node)) {
      if (!tape.has_value(input)) compute(tape, input);  // dropped by a backward meanwhile
    }
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
