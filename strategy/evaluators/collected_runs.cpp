#include "strategy/evaluators/collected_runs.h"

#include "strategy/run/report_of.h"

namespace palimpsest {

void CollectedRuns::begin() {
  runs_.emplace();
  computed_.clear();
  seconds_ = 0;
  seconds_again_ = 0;
}

Report CollectedRuns::take() {
  Report report = std::exchange(runs_, std::nullopt).value_or(Report{});
  const double once = seconds_ - seconds_again_;
  if (once > 0) report.compute_overhead = seconds_again_ / once;
  return report;
}

void CollectedRuns::add(const Report& run) {
  if (runs_) append_run(*runs_, run);
}

bool CollectedRuns::note(const Tape& tape, NodeId node, double seconds) {
  if (tape.is_temporary()) return false;
  const bool again = mark(node);
  seconds_ += seconds;
  if (again) seconds_again_ += seconds;
  return again;
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
  const Graph& graph = lowered.graph();
  std::vector<bool> seen(graph.node_count());
  std::vector<bool> again(seen.size());
  std::vector<NodeId> now;  // marked afterwards, since several units may each run the same node
  for (const Step& step : plan.schedule.steps) {
    if (step.kind != Step::Kind::compute) continue;
    const double seconds = graph.cost(step.id);
    seconds_ += seconds;
    if (seen[step.id]) {
      seconds_again_ += seconds;
      continue;
    }
    seen[step.id] = true;
    std::size_t members_again = 0;
    for (const NodeId node : lowered.members(step.id)) {
      if (node >= backward_begins || tape.operation(node).view) continue;
      if (node < computed_.size() && computed_[node]) ++members_again;
      now.push_back(node);
    }
    if (members_again == 0) continue;
    again[step.id] = true;
    ++report.recomputed;
    const auto members = static_cast<double>(lowered.members(step.id).size());
    seconds_again_ += seconds * static_cast<double>(members_again) / members;
  }
  for (const NodeId node : now) mark(node);
  for (Report::Step& step : report.steps) {
    if (again[step.event.node]) step.recomputed = true;
  }
}

}  // namespace palimpsest
