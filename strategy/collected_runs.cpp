#include "strategy/collected_runs.h"

#include "strategy/report_of.h"

namespace palimpsest {

void CollectedRuns::begin() {
  runs_.emplace();
  computed_.clear();
}

void CollectedRuns::add(const Report& run) {
  if (runs_) append_run(*runs_, run);
}

bool CollectedRuns::note(const Tape& tape, NodeId node) {
  return !tape.is_temporary() && mark(node);
}

bool CollectedRuns::mark(NodeId node) {
  if (computed_.size() <= node) computed_.resize(node + 1);
  const bool before = computed_[node];
  computed_[node] = true;
  return before;
}

void CollectedRuns::note_run(Report& report, const Tape& tape, const Lowered& lowered,
                             const Plan& plan, NodeId backward_begins) {
  if (!runs_) return;
  const bool has_backward = backward_begins < tape.node_count();
  if (tape.is_temporary() && !has_backward) return;
  std::vector<bool> seen(lowered.graph().node_count());
  std::vector<bool> again(seen.size());
  for (const Step& step : plan.schedule.steps) {
    if (step.kind != Step::Kind::compute || seen[step.id]) continue;
    seen[step.id] = true;
    const NodeId node = lowered.node(step.id);
    if (node >= backward_begins || tape.operation(node).view) continue;
    again[step.id] = mark(node);
    if (again[step.id]) ++report.recomputed;
  }
  for (Report::Step& step : report.steps) {
    if (again[step.event.node]) step.recomputed = true;
  }
}

}  // namespace palimpsest
