#pragma once

#include <string>

#include "checkpoint/planners.h"

namespace palimpsest {

/// A planner called `name` that proposes what `first` proposes, and improves the best of it.
PlannerPtr search_from(std::string name, PlannerPtr first, SearchSettings settings);

}  // namespace palimpsest
