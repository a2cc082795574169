#pragma once

#include <optional>

#include "autodiff/run_control.h"
#include "strategy/base/options.h"

namespace palimpsest {

/// The control of a run of so many steps; empty for a run that is neither stopped nor watched.
inline std::optional<RunControl> run_control_of(const RunOptions& options, std::uint64_t steps) {
  if (!is_controlled(options)) return std::nullopt;
  return std::optional<RunControl>(std::in_place, options.stop, options.progress, steps);
}

}  // namespace palimpsest
