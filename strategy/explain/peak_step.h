#pragma once

#include "checkpoint/plan.h"

namespace palimpsest {

/// The first compute step of a plan with the most live bytes. 0 for an empty schedule.
std::size_t peak_step_of(const Plan& plan);

}  // namespace palimpsest
