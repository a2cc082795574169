#pragma once

#include "strategy/batch_counts.h"
#include "strategy/execution/batch_cut.h"
#include "strategy/execution/choice/workload.h"
#include "strategy/execution/replica.h"

namespace palimpsest {

/// A workload, and the line of the user's call.
struct LocatedWorkload : Workload {
  Where where;
};

/// Records the loss of one of so many parts, and its means over counted targets in `means`. As for
/// a run, these divide by their shares, which are not known, since nothing is computed. Throws as
/// `Execution`.
LossAndOutputs record_loss_of_part(Tape& tape, int parts, std::span<const Tensor> batch,
                                   const LocatedWorkload& workload, CountedMeans& means);

/// Records a part of the batch as the strategy cuts it; the first part is the largest. Returns its
/// loss, scaled where the strategy scales it, with auxiliary outputs; or its value. Throws as
/// `Execution`.
LossAndOutputs record_part(Replica& replica, const ExecutionStrategy& strategy, const BatchCut& cut,
                           int part, const LocatedWorkload& workload, CountedMeans& means);

/// Forecasts that part when it is planned as a whole, on a lazy tape. Notes in `of_counting` the
/// refusal of a budget that is too small to count what its means divide by, if it names more than
/// the one there.
Forecast forecast_part(const ExecutionStrategy& strategy, const BatchCut& cut, int part,
                       const LocatedWorkload& workload, const Rates& rates,
                       std::optional<BudgetError>& of_counting);

}  // namespace palimpsest
