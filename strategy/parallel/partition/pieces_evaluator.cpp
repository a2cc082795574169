#include "strategy/parallel/partition/pieces_evaluator.h"

#include "strategy/execution/precision/precise.h"
#include "strategy/run/present.h"

namespace palimpsest {

std::shared_ptr<EngineEvaluator> evaluator_for_pieces(const ExecutionStrategy& strategy) {
  RunOptions options = strategy.run_options();
  options.planner = nullptr;  // planners are for gradients
  std::shared_ptr<EngineEvaluator> evaluator = lazy(std::move(options));
  if (strategy.precision) evaluator = precise(*strategy.precision, std::move(evaluator));
  return evaluator;
}

void require_nothing_computed(const Tape& tape, const std::string& mode) {
  std::vector<ValueId> present;
  append_present(tape, present);
  if (present.empty()) return;
  const NodeId node = tape.producer(present[0]);
  throw ArgumentError(
      mode,
      "the model reads the value of " + tape.describe(node) +
          " while it records, but it is partitioned only after recording; do not read the "
          "value, or choose another parallelism",
      tape.where(node));
}

void require_nothing_left(Tape& tape, const std::string& mode) {
  try {
    require_nothing_computed(tape, mode);
  } catch (...) {
    std::vector<ValueId> present;
    append_present(tape, present);
    for (const ValueId value : present) tape.drop(value);
    throw;
  }
}

}  // namespace palimpsest
