#pragma once

#include "strategy/evaluators/evaluators.h"

namespace palimpsest {

/// Computes what is asked for and nothing else: what `lazy` makes.
class LazyEvaluator final : public EngineEvaluator {
 public:
  using EngineEvaluator::EngineEvaluator;
  void on_record(Tape&, std::uint32_t) override {}
};

}  // namespace palimpsest
