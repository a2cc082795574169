#include "checkpoint/plan.h"

#include <algorithm>
#include <cstdio>

namespace palimpsest {

namespace {

std::string percent(double ratio) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * ratio);
  return text;
}

std::string both_ways(Bytes bytes) {
  return format_bytes(bytes) + " (" + std::to_string(bytes) + " bytes)";
}

}  // namespace

BudgetError::BudgetError(Bytes budget, Bytes smallest_feasible, const std::string& planner,
                         const std::string& remedy)
    : EnvironmentError("[plan] no plan of '" + planner + "' fits " +
                       (remedy.empty() ? "a budget of " : "its own limit of ") + both_ways(budget) +
                       "; the smallest budget found is " + both_ways(smallest_feasible) +
                       (remedy.empty() ? "" : ", which no budget allows; " + remedy)),
      budget_(budget),
      smallest_feasible_(smallest_feasible),
      own_limit_(!remedy.empty()) {}

Bytes Plan::bytes_saved() const { return std::max<Bytes>(keep_all_peak - predicted_peak(), 0); }

Bytes Plan::metadata_bytes() const {
  const std::size_t bytes =
      schedule.steps.size() * sizeof(Step) + simulation.timeline.size() * sizeof(Bytes) +
      layout.intervals.size() * sizeof(Interval) + runs.size() * sizeof(std::uint32_t);
  return static_cast<Bytes>(bytes);
}

bool Plan::recomputes(NodeId node) const {
  if (!runs.empty()) return node < runs.size() && runs[node] > 1;
  return std::count(schedule.steps.begin(), schedule.steps.end(), Step::compute(node)) > 1;
}

std::string Plan::summary() const {
  return summarize(planner, predicted_peak(), std::max(keep_all_peak, predicted_peak()),
                   simulation.computed, simulation.recomputed, compute_overhead(), loop_steps,
                   recomputed_loop_steps);
}

std::string summarize(const std::string& planner, Bytes peak, Bytes keep_all_peak,
                      std::uint32_t computed, std::uint32_t recomputed, double overhead,
                      std::uint64_t loop_steps, std::uint64_t recomputed_loop_steps) {
  const double share =
      keep_all_peak > 0 ? static_cast<double>(peak) / static_cast<double>(keep_all_peak) : 1.0;
  std::string steps = std::to_string(recomputed) + " of " + std::to_string(computed) + " steps";
  if (recomputed_loop_steps > 0) {
    steps += " and " + std::to_string(recomputed_loop_steps) + " of " + std::to_string(loop_steps) +
             " steps of loops";
  }
  return planner + ": peak " + format_bytes(peak) + " (" + percent(share) + " of keep-all), " +
         steps + " recompute, " + percent(overhead) + " extra work";
}

}  // namespace palimpsest
