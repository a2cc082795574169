#pragma once

#include "strategy/execution/batch_cut.h"
#include "strategy/execution/choice/workload.h"
#include "strategy/execution/replica.h"

namespace palimpsest {

/// A workload, and the line of the user's call.
struct LocatedWorkload : Workload {
  Where where;
};

/// Records the loss of one of so many parts. As for a run, its means over counted targets divide by
/// their shares; these are not known, since nothing is computed. Throws as `Execution`.
LossAndOutputs record_loss_of_part(Tape& tape, int parts, std::span<const Tensor> batch,
                                   const LocatedWorkload& workload);

/// Records a part of the batch as the strategy cuts it; the first part is the largest. Returns its
/// loss, scaled where the strategy scales it, with auxiliary outputs; or its value. Throws as
/// `Execution`.
LossAndOutputs record_part(Replica& replica, const ExecutionStrategy& strategy, const BatchCut& cut,
                           int part, const LocatedWorkload& workload);

/// Forecasts that part when it is planned as a whole.
Forecast forecast_part(const ExecutionStrategy& strategy, const BatchCut& cut, int part,
                       const LocatedWorkload& workload, const Rates& rates);

}  // namespace palimpsest
