#pragma once

#include "strategy/loops/loop.h"

namespace palimpsest {

/// True where one step stands for all. False where steps are recorded one by one, and where there
/// is a journal.
bool is_analysed(const Loop& loop);

/// Adds to what is requested of a loop's derivative which adjoints are carried from step to step.
/// They are those of floating tensors of the state that depend on a value whose adjoint is
/// returned, and on which a value depends whose adjoint is given. No result depends on others,
/// which are neither given nor returned. This is activity analysis (Griewank and Walther, 2008).
/// Where a loop is not analysed, all floating tensors are carried.
LoopGradient::Requested with_carried(const Loop& loop, LoopGradient::Requested requested);

}  // namespace palimpsest
