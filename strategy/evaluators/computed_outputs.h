#pragma once

#include "strategy/base/loss_and_outputs.h"
#include "strategy/evaluators/evaluators.h"

namespace palimpsest {

/// The loss and outputs that the evaluator computes for these, perhaps on another tape (see
/// `EngineEvaluator::computed_for`).
inline LossAndOutputs computed_for(EngineEvaluator& evaluator, const LossAndOutputs& values) {
  std::vector<Var> all{values.loss};
  all.insert(all.end(), values.outputs.begin(), values.outputs.end());
  const std::vector<Var> computed = evaluator.computed_for(values.loss.tape(), all);
  return {computed[0], {computed.begin() + 1, computed.end()}};
}

}  // namespace palimpsest
