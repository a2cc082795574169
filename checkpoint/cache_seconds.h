#pragma once

#include "checkpoint/machine.h"
#include "checkpoint/plan.h"

namespace palimpsest {

/// Predicted seconds of a plan on a machine with caches. Each operand moves at the rate of the
/// smallest cache that has held it since it was last touched, or of main memory. So recomputing
/// values while they are near may be faster than keeping them until they are far. The graph's own
/// costs assume that a node's operands come from the cache that holds them all together. O(steps
/// log intervals), and more where memory is reused in many pieces.
double seconds_in_caches(const Graph& graph, const Plan& plan, const Machine& machine);

}  // namespace palimpsest
