#pragma once

#include <vector>

#include "checkpoint/schedule.h"

namespace palimpsest {

/// The steps that run serial nodes, in order. Empty when no two successive ones could run
/// concurrently, because each depends on the one before.
std::vector<std::uint32_t> serial_steps(const Graph& graph, const Schedule& schedule);

}  // namespace palimpsest
