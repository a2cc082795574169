#pragma once

#include "strategy/base/report.h"

namespace palimpsest {

/// Adds to the report of a pass through layers that of the run of one, behind those before it: work
/// and time are added up, of peaks there is the highest. All that a run `again` of a layer computed
/// counts as recomputed.
void add_run(Report& sum, Report run, bool again);

}  // namespace palimpsest
