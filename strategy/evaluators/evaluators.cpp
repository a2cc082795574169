#include "strategy/evaluators/evaluators.h"

#include "strategy/evaluators/engine.h"
#include "strategy/evaluators/hybrid_evaluator.h"
#include "strategy/evaluators/lazy_evaluator.h"
#include "strategy/evaluators/online_evaluator.h"
#include "strategy/run/present.h"

namespace palimpsest {

EngineEvaluator::EngineEvaluator(RunOptions options)
    : EngineEvaluator(std::move(options), std::make_shared<Engine>()) {}

EngineEvaluator::EngineEvaluator(RunOptions options, std::shared_ptr<Engine> engine)
    : options_(std::move(options)), engine_(std::move(engine)) {}

const Meter& EngineEvaluator::meter() const { return engine_->meter(); }

std::uint64_t EngineEvaluator::plans_made() const { return engine_->plans_made(); }

void EngineEvaluator::set_engine(std::shared_ptr<Engine> engine) {
  engine_->in_use().require(InUse::Level::alone, "set_engine");
  engine_ = std::move(engine);
}

void EngineEvaluator::set_memory_budget(Bytes budget) {
  engine_->in_use().require(InUse::Level::alone, "set_memory_budget");
  options_.memory_budget = budget;
}

void EngineEvaluator::release_memory() { engine_->release_arena(); }

void EngineEvaluator::compute(Tape& tape, std::span<const ValueId> values) {
  tape.notice_writes();
  std::vector<ValueId> targets(values.begin(), values.end());
  // Without a budget nothing forces out values requested earlier.
  if (options_.memory_budget == unlimited) append_present(tape, targets);
  engine_->add_collected(engine_->evaluate(tape, targets, options_));
}

Buffer EngineEvaluator::room_beside(Tape& tape, Bytes held,
                                    const std::function<Bytes(Bytes budget)>& plan) {
  const Bytes budget = options_.memory_budget;
  const Bytes whole = plan(unlimited);
  if (budget == unlimited) return meter().allocate(whole);
  engine_->release_arena();
  if (whole <= budget - bytes_present(tape)) return meter().allocate(whole);
  let_go_of_present(tape);
  try {
    return meter().allocate(plan(std::max<Bytes>(budget - held, 0)));
  } catch (const BudgetError& refusal) {
    const Bytes least = held + refusal.smallest_feasible();
    throw BudgetError(
        "[value] a step of a loop, which reads a value while it is recorded, and what it reads "
        "take " +
            std::to_string(least) + " bytes, more than the budget of " + std::to_string(budget) +
            "; give the evaluator of the tape a larger one",
        budget, least);
  }
}

RunOptions EngineEvaluator::prepare(Tape&, const RunOptions& asked) {
  RunOptions options = asked;
  if (asked.memory_budget == unlimited) options.memory_budget = options_.memory_budget;
  return options;
}

std::vector<Var> EngineEvaluator::computed_for(Tape&, std::span<const Var> values) {
  return {values.begin(), values.end()};
}

std::shared_ptr<const void> EngineEvaluator::hold_temporary(Tape&) { return nullptr; }

namespace {

class EagerEvaluator : public EngineEvaluator {
 public:
  using EngineEvaluator::EngineEvaluator;

  bool keeps_recorded() const override { return true; }
  void on_record(Tape& tape, std::uint32_t node) override {
    tape.notice_writes();
    std::vector<ValueId> missing;  // dropped by a `backward` since then
    for (const ValueId input : tape.inputs(node)) {
      if (!tape.has_value(input)) missing.push_back(input);
    }
    if (!missing.empty()) compute(tape, missing);
    engine().compute_now(tape, node, options());
  }
};

}  // namespace

std::shared_ptr<EngineEvaluator> lazy(RunOptions options) {
  return std::make_shared<LazyEvaluator>(std::move(options));
}

std::shared_ptr<EngineEvaluator> eager(RunOptions options) {
  if (options.planner != nullptr) {
    throw ArgumentError(
        "[eager] an eager tape does not plan while it records; give the planner to backward(), or "
        "use lazy()");
  }
  if (options.memory != AllocationPolicy::minimal_peak) {
    throw ArgumentError("[eager] memory = " + std::string(name_of(options.memory)) +
                        " has no effect while an eager tape records, because every value has its "
                        "own storage; give it to backward()");
  }
  if (options.profile) {
    throw ArgumentError(
        "[eager] no report covers the work of an eager tape while it records; give profile to "
        "backward(), or run an Execution in eager mode with profiling");
  }
  return eager_of_execution(std::move(options));
}

std::shared_ptr<EngineEvaluator> eager_of_execution(RunOptions options) {
  if (options.memory_budget < 0) {
    throw ArgumentError("[eager] the memory budget is " + std::to_string(options.memory_budget) +
                        " bytes; give a positive number, such as 256_MiB");
  }
  if (options.memory_budget == unlimited) {
    return std::make_shared<EagerEvaluator>(std::move(options));
  }
  return std::make_shared<OnlineEvaluator>(std::move(options));
}

std::shared_ptr<EngineEvaluator> hybrid(RunOptions options, StageLimits limits) {
  if (limits.nodes < 1 || limits.bytes < 1) {
    throw ArgumentError("[hybrid] the stage limits are " + std::to_string(limits.nodes) +
                        " nodes and " + std::to_string(limits.bytes) +
                        " bytes; give limits of 1 or more");
  }
  return std::make_shared<HybridEvaluator>(std::move(options), limits);
}

}  // namespace palimpsest
