#pragma once

/// Everything for training that `palimpsest.h` does not include: schedules of the learning rate,
/// averages of weights, the L-BFGS method, and files that a run continues from.
#include "strategy/training/lbfgs.h"
#include "strategy/training/plateau_schedule.h"
#include "strategy/training/rate_schedule.h"
#include "strategy/training/training_parts.h"
#include "strategy/training/training_state.h"
#include "strategy/training/weight_average.h"
