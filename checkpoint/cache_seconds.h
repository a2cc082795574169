#pragma once

#include "checkpoint/machine.h"
#include "checkpoint/plan.h"

namespace palimpsest {

/// What a plan takes on a machine where each operand moves at the rate of the smallest cache that
/// has held it since it was last touched, or of main memory: one that computes values again while
/// they are near may take less than one that keeps them until they are far. Costs of nodes are the
/// graph's, which takes each node's operands to come from the cache that holds them together.
/// O(steps log intervals) and more where memory is reused in many pieces.
double seconds_in_caches(const Graph& graph, const Plan& plan, const Machine& machine);

}  // namespace palimpsest
