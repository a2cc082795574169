#include "strategy/report_of.h"

#include <algorithm>

#include "autodiff/kernels/kernels.h"
#include "strategy/fusion/work.h"

namespace palimpsest {
namespace {

void fill_steps(Report& report, const Tape& tape, const Executor& executor) {
  const Lowered& lowered = executor.instructions().lowered();
  report.resident = resident_size();
  std::vector<bool> seen(lowered.graph().node_count());
  report.steps.reserve(executor.events().size());
  for (const Event& event : executor.events()) {
    const NodeId node = lowered.node(event.node);
    std::string name(tape.scope_of(node));
    if (!name.empty() && !tape.name(node).empty()) name += '/';
    name += tape.name(node);
    report.steps.push_back({operation_of(tape, lowered, event.node), std::move(name),
                            work_of(tape, lowered, event.node), event, seen[event.node]});
    report.kernel_seconds += static_cast<double>(event.end - event.start) * 1e-9;
    seen[event.node] = true;
  }
}

}  // namespace

Report report_of(const Tape& tape, const Plan& plan, const Executor& executor, int threads,
                 bool profile) {
  Report report;
  report.planner = plan.planner;
  report.kernel_level = kernels().level;
  if (const char* library = kernels().product_library) {
    report.kernel_level += std::string("+") + library;
  }
  report.threads = threads;
  report.budget = plan.budget;
  report.keep_all_peak = std::max(plan.keep_all_peak, plan.predicted_peak());
  report.predicted_peak = plan.predicted_peak();
  report.predicted_live_peak = plan.simulation.peak;
  report.measured_peak = executor.peak();
  report.measured_live_peak = executor.peak_live();
  report.allocations = executor.allocations();
  report.tape_metadata = tape.metadata_bytes();
  report.merged = executor.instructions().lowered().merged();
  report.folded = executor.instructions().lowered().folded();
  report.computed = plan.simulation.computed;
  report.recomputed = plan.simulation.recomputed;
  report.compute_overhead = plan.compute_overhead();
  if (profile) fill_steps(report, tape, executor);
  return report;
}

}  // namespace palimpsest
