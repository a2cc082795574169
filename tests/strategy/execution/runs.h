#pragma once

#include "palimpsest.h"
#include "tests/catch.h"
#include "tests/strategy/execution/models.h"

namespace palimpsest {

struct Found {
  double loss = 0;
  std::vector<Tensor> gradients;
  Report report;
};

/// The last of `steps` steps, so that plans and memory are those kept from earlier steps.
inline Found run(const SmallModel& model, const ExecutionStrategy& strategy, int steps = 2,
                 LossReduction reduction = LossReduction::mean) {
  Execution execution(strategy, reduction);
  Found found;
  for (int step = 0; step < steps; ++step) {
    const Gradients g = execution.gradients(model.loss, model.parameters, model.batch);
    found = {g.loss().item(), {}, g.report()};
    for (const Gradients::Entry& entry : g) found.gradients.push_back(entry.gradient.clone());
  }
  return found;
}

inline bool have_same_bits(const Found& a, const Found& b) {
  if (!same_number(a.loss, b.loss) || a.gradients.size() != b.gradients.size()) return false;
  for (std::size_t i = 0; i < a.gradients.size(); ++i) {
    if (!same_bits(a.gradients[i], b.gradients[i])) return false;
  }
  return true;
}

inline ExecutionStrategy pipeline_of(int stages, int micro_batches) {
  ExecutionStrategy strategy;
  strategy.parallelism = ParallelMode::pipeline;
  strategy.stages = stages;
  strategy.accumulation = micro_batches;
  return strategy;
}

}  // namespace palimpsest
