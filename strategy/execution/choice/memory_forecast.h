#pragma once

#include <iosfwd>
#include <string>

#include "autodiff/export.h"
#include "strategy/execution/choice/estimate.h"
#include "strategy/training/optimizer.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// The bytes that a program takes, by what holds them.
struct MemoryForecast {
  Bytes parameters = 0;
  Bytes batch = 0;
  Bytes optimizer_state = 0;
  Bytes step = 0;      ///< values, adjoints, gradients and workspaces: `Estimate::peak`
  Bytes metadata = 0;  ///< of the tapes with their adjoints, approximately

  Bytes total() const { return parameters + batch + optimizer_state + step + metadata; }
  /// A table with the total.
  std::string summary() const;
};

std::ostream& operator<<(std::ostream& stream, const MemoryForecast& forecast);

/// Predicts what a workload takes when a strategy runs it and `optimizer`, if given, updates its
/// parameters. Computes nothing, so the tensors of the workload only need the right types. The
/// process itself, plans and datasets come on top. Throws as `estimate`.
MemoryForecast forecast_memory(const ExecutionStrategy& strategy, const Workload& workload,
                               const Optimizer* optimizer = nullptr, const Rates& rates = {},
                               Where where = Where::current());

}  // namespace palimpsest
