#pragma once

#include "strategy/mpi/rank_pipeline.h"
#include "tests/strategy/mpi/model.h"
#include "tests/strategy/mpi/ranks.h"

namespace palimpsest {

inline ExecutionStrategy pipeline_of(int micro_batches) {
  return {.accumulation = micro_batches, .parallelism = ParallelMode::pipeline};
}

inline LossReduction reduction_of(const Model& model) {
  return model.is_sum ? LossReduction::sum : LossReduction::mean;
}

/// A model and one of its losses.
struct Case {
  std::string name;
  Model model{DType::f32, 12, 6};
  ModelFunction loss = model.loss();
};

/// The last of three steps, on all ranks.
inline Found on_ranks(const Case& of, const ExecutionStrategy& strategy) {
  DistributedExecution execution(world(), strategy, {.reduction = reduction_of(of.model)});
  Found found;
  for (int step = 0; step < 3; ++step) {
    found = Found(execution.gradients(of.loss, of.model.parameters, of.model.batch));
  }
  return found;
}

}  // namespace palimpsest
