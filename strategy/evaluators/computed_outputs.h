#pragma once

#include <algorithm>
#include <vector>

#include "strategy/base/loss_and_outputs.h"
#include "strategy/evaluators/evaluators.h"
#include "strategy/run/present.h"

namespace palimpsest {

/// The loss and outputs that the evaluator computes for these, perhaps on another tape (see
/// `EngineEvaluator::computed_for`).
inline LossAndOutputs computed_for(EngineEvaluator& evaluator, const LossAndOutputs& values) {
  std::vector<Var> all{values.loss};
  all.insert(all.end(), values.outputs.begin(), values.outputs.end());
  const std::vector<Var> computed = evaluator.computed_for(values.loss.tape(), all);
  return {computed[0], {computed.begin() + 1, computed.end()}};
}

/// Drops the values on the tape of `made`, and on the tape that is computed in its place.
inline void drop_computed(EngineEvaluator& evaluator, const Var& made) {
  const Var in_place = computed_for(evaluator, made).loss;
  let_go_of_present(made.tape());
  let_go_of_present(in_place.tape());
}

/// The loss and the outputs that a run computes, each once: without leaves among the outputs.
inline std::vector<ValueId> computed_values(const LossAndOutputs& values) {
  const Tape& tape = values.loss.tape();
  std::vector<ValueId> computed{values.loss.id()};
  for (const Var& output : values.outputs) {
    const bool is_known = std::ranges::find(computed, output.id()) != computed.end();
    if (!is_known && !tape.is_leaf(output.node())) computed.push_back(output.id());
  }
  return computed;
}

}  // namespace palimpsest
