#pragma once

#include <string>

#include "checkpoint/planners.h"

namespace palimpsest {

/// A planner called `name` that proposes what `first` does and the best of it improved.
PlannerPtr search_from(std::string name, PlannerPtr first, SearchSettings settings);

}  // namespace palimpsest
