#pragma once

#include "strategy/execution/batch_cut.h"
#include "strategy/execution/choice/workload.h"
#include "strategy/execution/replica.h"

namespace palimpsest {

/// Records a part of the batch that a strategy cuts, of which the first is the largest: its loss,
/// scaled where the strategy has it scaled, or its value. Throws as `Execution`.
Var record_part(Replica& replica, const ExecutionStrategy& strategy, const BatchCut& cut, int part,
                const Workload& workload);

/// What that part takes when it is planned as a whole.
Forecast forecast_part(const ExecutionStrategy& strategy, const BatchCut& cut, int part,
                       const Workload& workload, const Rates& rates);

}  // namespace palimpsest
