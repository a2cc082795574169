#pragma once

#include "strategy/base/report.h"

namespace palimpsest {

/// Adds the report of one layer's run to the report of a pass through several layers. Work and time
/// are added up; of peaks the highest is kept. If `again` is set, everything that the run computed
/// counts as recomputed.
void add_run(Report& sum, Report run, bool again);

}  // namespace palimpsest
