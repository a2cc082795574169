#pragma once

#include <string>

#include "autodiff/export.h"
#include "strategy/base/report.h"
#include "strategy/explain/explanation.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// A self-contained HTML page without references to other files. It shows live bytes over time,
/// what is live during each step and why, what is recomputed, and other budgets. Plans within some
/// budgets, fewer for a large graph.
std::string page_of(const Explanation& explanation, const std::string& title);

/// The page of a run: in addition, loops, and a lane for each stage or device. A run that was not
/// planned as a whole has no explanation; its page shows the steps if it was profiled.
std::string page_of(const Report& report);

}  // namespace palimpsest
