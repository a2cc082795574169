#include "checkpoint/layout.h"

#include <algorithm>

#include "checkpoint/placement.h"

namespace palimpsest {

namespace {

/// The intervals of a schedule by first step; offsets are still 0.
std::vector<Interval> intervals_of(const Graph& graph, const Schedule& schedule) {
  std::vector<Interval> intervals;
  std::vector<std::uint32_t> open(graph.value_count(), none);
  std::vector<std::uint32_t> holders(graph.value_count());
  std::vector<bool> live(graph.value_count());
  const auto end = static_cast<std::uint32_t>(std::max<std::size_t>(schedule.steps.size(), 1)) - 1;

  const auto revive = [&](ValueId value, std::uint32_t step) {
    if (live[value]) return;
    live[value] = true;
    const ValueId root = graph.storage(value);
    if (holders[root]++ > 0 || graph.bytes(root) == 0) return;
    open[root] = static_cast<std::uint32_t>(intervals.size());
    intervals.push_back({root, step, end, graph.bytes(root)});
  };
  for (ValueId value = 0; value < graph.value_count(); ++value) {
    if (graph.is_present(value)) revive(value, 0);
  }
  for (std::uint32_t k = 0; k < schedule.steps.size(); ++k) {
    const Step step = schedule.steps[k];
    if (step.kind == Step::Kind::compute) {
      for (std::uint32_t i = 0; i < graph.output_count(step.id); ++i) {
        revive(graph.first_output(step.id) + i, k);
      }
      if (const Bytes bytes = graph.workspace(step.id); bytes > 0) {
        intervals.push_back({Interval::workspace, k, k, bytes});
      }
    } else {
      live[step.id] = false;
      const ValueId root = graph.storage(step.id);
      if (--holders[root] == 0 && graph.bytes(root) > 0) intervals[open[root]].last = k;
    }
  }
  return intervals;
}

}  // namespace

Layout lay_out(const Graph& graph, const Schedule& schedule, Bytes enough) {
  constexpr double share = 0.02;  // of the time in which the result is used once
  Layout layout{intervals_of(graph, schedule)};
  layout.size =
      place(layout.intervals, {.enough = enough, .patience = share * graph.one_pass_cost()});
  return layout;
}

Layout lay_out_quickly(const Graph& graph, const Schedule& schedule, Bytes enough) {
  Layout layout{intervals_of(graph, schedule)};
  layout.size = place(layout.intervals, {.enough = enough, .quick = true});
  return layout;
}

}  // namespace palimpsest
