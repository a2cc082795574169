#include "strategy/execution/layer_checkpointing/added_reports.h"

#include <algorithm>
#include <iterator>

#include "strategy/run/report_of.h"

namespace palimpsest {

void add_run(Report& sum, Report run, bool again) {
  sum.plan_reused = run.plan_reused && (sum.plan_reused || sum.computed == 0);
  sum.threads = run.threads;
  sum.thread_problem = std::move(run.thread_problem);
  sum.kernel_level = std::move(run.kernel_level);
  sum.memory = run.memory;
  sum.budget = std::min(sum.budget, run.budget);
  for (const auto peak : {&Report::keep_all_peak, &Report::predicted_peak, &Report::measured_peak,
                          &Report::predicted_live_peak, &Report::measured_live_peak,
                          &Report::cached_bytes, &Report::resident, &Report::tape_metadata}) {
    sum.*peak = std::max(sum.*peak, run.*peak);
  }
  if (again) run.recomputed = run.computed;
  add_counts(sum, run);
  sum.plan_improvements += run.plan_improvements;
  sum.planning_seconds += run.planning_seconds;
  const auto before = static_cast<std::int64_t>(sum.run_seconds * 1e9);
  for (Report::Step& step : run.steps) {
    step.event.start += before;
    step.event.end += before;
    step.recomputed = step.recomputed || again;
  }
  sum.run_seconds += run.run_seconds;
  std::ranges::move(run.steps, std::back_inserter(sum.steps));
  std::ranges::move(run.loops, std::back_inserter(sum.loops));
}

}  // namespace palimpsest
