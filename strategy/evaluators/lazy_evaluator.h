#pragma once

#include "strategy/evaluators/evaluators.h"

namespace palimpsest {

/// The evaluator that `lazy` returns. Computes only requested values and what they need.
class LazyEvaluator final : public EngineEvaluator {
 public:
  using EngineEvaluator::EngineEvaluator;
  void on_record(Tape&, std::uint32_t) override {}
};

}  // namespace palimpsest
