#include "strategy/base/report.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iomanip>
#include <ostream>

#include "strategy/base/operation_times.h"

namespace palimpsest {

Bytes resident_size() {
  std::ifstream file("/proc/self/statm");
  Bytes total = 0;
  Bytes resident = 0;
  if (!(file >> total >> resident)) return 0;
  return resident * static_cast<Bytes>(sysconf(_SC_PAGESIZE));
}

std::string Report::summary() const {
  std::uint64_t loop_steps = 0;
  std::uint64_t recomputed_loop_steps = 0;
  for (const Loop& loop : loops) {
    loop_steps += loop.forward_steps;
    recomputed_loop_steps += loop.recomputed_steps;
  }
  return summarize(planner, predicted_peak, keep_all_peak, computed, recomputed, compute_overhead,
                   loop_steps, recomputed_loop_steps);
}

std::string Report::Loop::describe_states() const {
  const std::string text = std::to_string(states) + " states held";
  if (held_components.size() == components) return text;
  if (held_components.empty()) return text + ", because no derivative of a step reads one";
  std::string numbers;
  for (const std::uint32_t component : held_components) {
    numbers += (numbers.empty() ? "" : ", ") + std::to_string(component);
  }
  return text + " (of their " + std::to_string(components) + " components, those with the index " +
         numbers + ")";
}

double Report::idle() const {
  if (timeline.empty()) return 0;
  std::int64_t begin = timeline.front().start;
  std::int64_t end = begin;
  std::int64_t busy = 0;
  for (const StageTask& task : timeline) {
    begin = std::min(begin, task.start);
    end = std::max(end, task.end);
    busy += task.end - task.start;
  }
  const double all = static_cast<double>(end - begin) * static_cast<double>(stages.size());
  return all > 0 ? 1 - static_cast<double>(busy) / all : 0;
}

std::ostream& operator<<(std::ostream& stream, const Report& report) {
  const auto bytes = [](Bytes n) { return n == unlimited ? std::string("none") : format_bytes(n); };
  const auto line = [&](const char* label) -> std::ostream& {
    return stream << "  " << std::left << std::setw(18) << label << std::right;
  };
  const auto old_flags = stream.flags();
  const auto old_precision = stream.precision(3);
  stream << std::fixed << report.summary() << '\n';
  line("budget") << bytes(report.budget) << ", keep-all would take " << bytes(report.keep_all_peak)
                 << '\n';
  line("peak") << "predicted " << bytes(report.predicted_peak) << ", measured "
               << bytes(report.measured_peak);
  if (report.memory == AllocationPolicy::pooled || report.memory == AllocationPolicy::standard) {
    stream << ", " << name_of(report.memory) << " storage, " << report.allocations
           << " allocations from the system";
  }
  stream << '\n';
  if (report.memory == AllocationPolicy::cached) {
    line("cached") << report.cached << " values of the previous run, " << bytes(report.cached_bytes)
                   << " kept\n";
  }
  if (report.replicas > 1 || report.micro_batches > 1) {
    line("parts") << report.replicas << " in parallel, " << report.micro_batches
                  << " in sequence\n";
  }
  if (!report.thread_problem.empty()) line("fewer threads") << report.thread_problem << '\n';
  if (!report.precision.empty()) {
    line("precision") << report.precision;
    if (report.loss_scale != 1) stream << ", loss scaled by " << report.loss_scale;
    if (report.overflowed) stream << ", overflowed";
    stream << '\n';
  }
  line("live bytes") << "predicted " << bytes(report.predicted_live_peak) << ", measured "
                     << bytes(report.measured_live_peak) << '\n';
  line("tape") << bytes(report.tape_metadata);
  if (report.resident > 0) stream << ", process " << bytes(report.resident) << " resident";
  stream << '\n';
  line("nodes") << report.computed << " run, " << report.recomputed << " recomputed, "
                << 100 * report.compute_overhead << " % extra work";
  if (report.groups > 0) stream << "; fused " << report.groups << " groups of operations";
  if (report.common_subexpressions + report.folded_constants > 0) {
    stream << "; removed ";
    const auto counted = [&](std::uint32_t count, const char* what) {
      stream << count << what << (count == 1 ? "" : "s");
    };
    counted(report.common_subexpressions, " common subexpression");
    stream << ", folded ";
    counted(report.folded_constants, " constant");
  }
  stream << '\n';
  if (report.native.groups > 0) {
    line("native code") << report.native.groups << " groups, " << report.native.steps
                        << " programs of loop steps, " << bytes(report.native.code)
                        << ", compiled in " << 1e3 * report.native.compile_seconds << " ms";
    if (report.native.seconds > 0 && report.native.interpreted_seconds > 0) {
      stream << "; " << 1e6 * report.native.seconds << " µs a run, interpreted "
             << 1e6 * report.native.interpreted_seconds << " µs";
    }
    stream << '\n';
  }
  if (!report.native.problem.empty()) {
    line("interpreted") << report.native.problem << '\n';
  }
  for (const Report::Loop& loop : report.loops) {
    line("loop") << loop.name << ", ";
    if (loop.steps > 0) {
      stream << loop.steps << " steps, run " << static_cast<double>(loop.forward_steps) / loop.steps
             << " times each, ";
    }
    stream << loop.describe_states();
    if (loop.kept_steps > 0) stream << ", values of " << loop.kept_steps << " steps kept";
    if (loop.disk_writes > 0) {
      stream << ", " << loop.disk_writes << " written to disk and " << loop.disk_reads << " read";
    }
    if (loop.step_budget > 0) stream << ", step budget " << bytes(loop.step_budget);
    if (loop.ahead > 0) stream << ", " << loop.ahead << " computed ahead";
    if (loop.resumed > 0) stream << ", continued from a journal";
    if (loop.records > 0) stream << ", " << loop.records << " records in the journal";
    if (loop.states_repaired > 0) {
      stream << ", " << loop.states_repaired << " damaged states made again";
    }
    stream << (loop.recorded_again ? ", recorded one by one" : "") << '\n';
  }
  for (std::size_t s = 0; s < report.stages.size(); ++s) {
    const Report::Stage& stage = report.stages[s];
    line("stage") << s << ", " << bytes(stage.incoming) << " received, " << stage.in_flight
                  << " in flight, peak predicted " << bytes(stage.predicted_peak) << ", measured "
                  << bytes(stage.measured_peak) << ", budget " << bytes(stage.budget)
                  << (stage.computes_again ? ", recomputes forward" : "") << '\n';
  }
  if (!report.stages.empty()) line("stages idle") << 100 * report.idle() << " % of the time\n";
  for (std::size_t d = 0; d < report.devices.size(); ++d) {
    const Report::Device& device = report.devices[d];
    line("device") << d << ", " << bytes(device.incoming) << " received, peak predicted "
                   << bytes(device.predicted_peak) << ", measured " << bytes(device.measured_peak)
                   << ", budget " << bytes(device.budget)
                   << (device.computes_again ? ", recomputes forward" : "") << '\n';
  }
  line("time") << 1e3 * report.run_seconds << " ms on " << report.threads << " threads ("
               << report.kernel_level << "), ";
  if (!report.steps.empty()) stream << "in kernels " << 1e3 * report.kernel_seconds << " ms, ";
  stream << "planning " << 1e3 * report.planning_seconds << " ms"
         << (report.plan_reused ? " (plan reused)" : "")
         << (report.plan_improvements > 0 ? " (and improved)" : "") << '\n';
  constexpr std::size_t most_shown = 8;
  auto times = report.by_operation();
  times.resize(std::min(most_shown, times.size()));
  for (const Report::OperationTime& time : times) {
    write_row(line(&time == times.data() ? "by operation" : ""), time);
  }
  stream.flags(old_flags);
  stream.precision(old_precision);
  return stream;
}

}  // namespace palimpsest
