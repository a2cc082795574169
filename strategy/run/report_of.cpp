#include "strategy/run/report_of.h"

#include <algorithm>

#include "autodiff/kernels/kernels.h"
#include "checkpoint/node_seconds.h"
#include "strategy/compile/fusion/work.h"
#include "strategy/run/tape_reading.h"

namespace palimpsest {
namespace {

std::int64_t nanoseconds(double seconds) { return static_cast<std::int64_t>(seconds * 1e9); }

NativeProgram::Facts add_program(Report::Native& sum, const NativeProgram& program,
                                 NativeCode mode) {
  NativeProgram::Facts facts = program.facts(mode);
  if (sum.problem.empty()) sum.problem = facts.problem;
  sum.groups += facts.groups;
  sum.compile_seconds += facts.compile_seconds;
  sum.code += facts.code;
  return facts;
}

}  // namespace

Report::Native native_of(const Executor& executor) {
  Report::Native sum;
  if (executor.native() != nullptr) {
    const auto facts = add_program(sum, *executor.native(), executor.native_mode());
    sum.share = facts.share;
    sum.seconds = facts.seconds;
    sum.interpreted_seconds = facts.interpreted_seconds;
  }
  for (const auto& [subject, note] : executor.notes()) {
    const auto* const native = dynamic_cast<const NativeNote*>(note.get());
    if (native == nullptr) continue;
    const auto facts = add_program(sum, *native->program, executor.native_mode());
    if (facts.serves && facts.has_run) ++sum.steps;
  }
  return sum;
}

void add_native(Report::Native& sum, const Report::Native& other) {
  // The parts may share code, so its bytes and seconds are those of the largest part.
  sum.groups += other.groups;
  sum.steps += other.steps;
  sum.share = std::max(sum.share, other.share);
  sum.compile_seconds = std::max(sum.compile_seconds, other.compile_seconds);
  sum.code = std::max(sum.code, other.code);
  sum.seconds = std::max(sum.seconds, other.seconds);
  sum.interpreted_seconds = std::max(sum.interpreted_seconds, other.interpreted_seconds);
  if (sum.problem.empty()) sum.problem = other.problem;
}

void append_step(Report& report, const Tape& tape, NodeId node, bool again, Bytes live) {
  const Event event{.node = node, .end = nanoseconds(report.run_seconds), .live = live};
  report.steps.push_back({std::string(tape.operation(node).name), scoped_name(tape, node),
                          work_of(tape, node), event, again, cost_of(NodeView(tape.nodes(), node)),
                          computed_in(NodeView(tape.nodes(), node))});
  report.kernel_seconds += report.run_seconds;
}

void append_run(Report& report, const Report& run) {
  const std::int64_t end = report.steps.empty() ? 0 : report.steps.back().event.end;
  const std::int64_t begin = std::max(nanoseconds(report.run_seconds), end);
  for (Report::Step step : run.steps) {
    step.event.start += begin;
    step.event.end += begin;
    report.steps.push_back(std::move(step));
  }
  report.planning_seconds += run.planning_seconds;
  report.run_seconds += run.run_seconds;
  add_counts(report, run);
}

void append_steps(Report& report, const Tape& tape, const Executor& executor) {
  const Lowered& lowered = executor.instructions().lowered();
  std::vector<bool> seen(lowered.graph().node_count());
  report.steps.reserve(report.steps.size() + executor.events().size());
  for (const Event& event : executor.events()) {
    const NodeId node = lowered.node(event.node);
    report.steps.push_back({operation_of(tape, lowered, event.node), scoped_name(tape, node),
                            work_of(tape, lowered, event.node), event, seen[event.node],
                            cost_of_unit(tape, lowered, event.node),
                            computed_in(NodeView(tape.nodes(), node))});
    report.kernel_seconds += static_cast<double>(event.end - event.start) * 1e-9;
    seen[event.node] = true;
  }
}

std::string kernel_level() {
  std::string level = kernels().level;
  if (const char* library = kernels().product_library) level += std::string("+") + library;
  return level;
}

Report report_of(const Tape& tape, const Plan& plan, const Executor& executor, int threads,
                 bool profile) {
  Report report;
  report.planner = plan.planner;
  report.kernel_level = kernel_level();
  report.threads = threads;
  report.budget = plan.budget;
  report.keep_all_peak = std::max(plan.keep_all_peak, plan.predicted_peak());
  report.predicted_peak = plan.predicted_peak();
  report.predicted_live_peak = plan.simulation.peak;
  report.measured_peak = executor.peak();
  report.measured_live_peak = executor.peak_live();
  report.allocations = executor.allocations();
  report.tape_metadata = tape.metadata_bytes();
  report.common_subexpressions = executor.instructions().lowered().common_subexpressions();
  report.folded_constants = executor.instructions().lowered().folded_constants();
  report.groups = executor.instructions().lowered().groups();
  report.computed = plan.simulation.computed;
  report.recomputed = plan.simulation.recomputed;
  report.compute_overhead = plan.compute_overhead();
  report.native = native_of(executor);
  if (profile) {
    report.resident = resident_size();
    append_steps(report, tape, executor);
  }
  return report;
}

void add_counts(Report& sum, const Report& other) {
  sum.allocations += other.allocations;
  sum.cached += other.cached;
  sum.computed += other.computed;
  sum.recomputed += other.recomputed;
  sum.common_subexpressions += other.common_subexpressions;
  sum.folded_constants += other.folded_constants;
  sum.groups += other.groups;
  sum.kernel_seconds += other.kernel_seconds;
  add_native(sum.native, other.native);
}

}  // namespace palimpsest
