#pragma once

#include <string_view>

#include "strategy/base/execution_strategy.h"

namespace palimpsest {

/// An option of runs that is on or off.
struct Switch {
  const char* name;  ///< in strategy files
  bool RunOptions::* member;
  std::string_view if_changed;  ///< in summaries, where it is not the default
};

/// All of them. Files, summaries and their tests iterate over these rows.
inline constexpr Switch switches[] = {
    {"fusion", &RunOptions::fuse, "no fusion"},
    {"simplification", &RunOptions::simplify, "as recorded"},
    {"profiling", &RunOptions::profile, "profiled"},
    {"anomaly", &RunOptions::anomaly, "anomalies are errors"},
};

/// Calls `visit(name, value)` for each field that strategy files have, in their order.
template <class Strategy, class Visit>
void visit_fields(Strategy& strategy, Visit visit) {
  visit("mode", strategy.mode);
  visit("stage", strategy.stage);
  visit("precision", strategy.precision);
  visit("gradient", strategy.gradient);
  visit("checkpoint_interval", strategy.checkpoint_interval);
  visit("checkpoint_fraction", strategy.checkpoint_fraction);
  visit("checkpoint_planner", strategy.checkpoint_planner);
  visit("accumulation", strategy.accumulation);
  visit("memory", strategy.run.memory);
  visit("memory_budget", strategy.run.memory_budget);
  visit("parallelism", strategy.parallelism);
  visit("workers", strategy.workers);
  visit("stages", strategy.stages);
  visit("devices", strategy.devices);
  visit("threads", strategy.run.threads);
  visit("native", strategy.run.native);
  for (const Switch& each : switches) visit(each.name, strategy.run.*each.member);
}

}  // namespace palimpsest
