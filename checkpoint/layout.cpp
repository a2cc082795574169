#include "checkpoint/layout.h"

#include <algorithm>
#include <optional>
#include <span>

#include "checkpoint/placement.h"
#include "checkpoint/serial_steps.h"

namespace palimpsest {

namespace {

/// The intervals of a schedule, by first step. Offsets are still 0.
class Intervals {
 public:
  Intervals(const Graph& graph, const Schedule& schedule)
      : graph_(graph),
        steps_(schedule.steps),
        open_(graph.value_count(), none),
        holders_(graph.value_count()),
        live_(graph.value_count()),
        end_(static_cast<std::uint32_t>(std::max<std::size_t>(steps_.size(), 1)) - 1) {
    for (ValueId value = 0; value < graph.value_count(); ++value) {
      if (graph.is_present(value)) revive(value, 0);
    }
    for (std::uint32_t k = 0; k < steps_.size(); ++k) {
      steps_[k].kind == Step::Kind::compute ? compute(k, steps_[k].id) : drop(k, steps_[k].id);
    }
  }

  /// Extends intervals that end with one of the `serial` steps until `count` more of these have
  /// run, or until the last of them.
  void keep_past(std::span<const std::uint32_t> serial, std::size_t count) {
    // Drops after a step count as part of it: they end before the next compute step.
    const auto of = [&](std::uint32_t step) -> std::optional<std::size_t> {
      while (step > 0 && steps_[step].kind == Step::Kind::drop) --step;
      const auto at = std::ranges::lower_bound(serial, step);
      if (at == serial.end() || *at != step) return {};
      return static_cast<std::size_t>(at - serial.begin());
    };
    for (Interval& interval : list_) {
      const std::optional<std::size_t> end = of(interval.last);
      if (!end) continue;
      interval.last = std::max(interval.last, serial[std::min(*end + count, serial.size() - 1)]);
    }
  }

  /// The intervals at the places of a layout in which some of them last longer.
  std::vector<Interval> with_places_of(const Layout& layout) const {
    std::vector<Interval> list = list_;
    for (std::size_t i = 0; i < list.size(); ++i) list[i].offset = layout.intervals[i].offset;
    return list;
  }

  Layout placed(const Effort& effort) const {
    Layout layout{list_};
    layout.size =
        any_taken_ ? place_chains(layout.intervals, effort) : place(layout.intervals, effort);
    return layout;
  }

 private:
  void compute(std::uint32_t k, NodeId node) {
    const std::size_t first = list_.size();
    for (std::uint32_t i = 0; i < graph_.output_count(node); ++i) {
      revive(graph_.first_output(node) + i, k);
    }
    for (std::size_t made = first; made < list_.size(); ++made) {
      const ValueId root = graph_.possible_donor(list_[made].storage);
      if (root == none || !is_given_up(graph_, steps_, k, root, holders_[root])) continue;
      list_[made].takes_over = open_[root];
      any_taken_ = true;
    }
    if (const Bytes bytes = graph_.workspace(node); bytes > 0) {
      list_.push_back({Interval::workspace, k, k, bytes});
    }
  }

  void drop(std::uint32_t k, ValueId value) {
    live_[value] = false;
    const ValueId root = graph_.storage(value);
    if (--holders_[root] == 0 && graph_.bytes(root) > 0) list_[open_[root]].last = k;
  }

  void revive(ValueId value, std::uint32_t step) {
    if (live_[value]) return;
    live_[value] = true;
    const ValueId root = graph_.storage(value);
    if (holders_[root]++ > 0 || graph_.bytes(root) == 0) return;
    open_[root] = static_cast<std::uint32_t>(list_.size());
    list_.push_back({root, step, end_, graph_.bytes(root)});
  }

  /// Places an interval and those that take over from it as one.
  static Bytes place_chains(std::span<Interval> intervals, const Effort& effort) {
    std::vector<Interval> chains;
    std::vector<std::uint32_t> chain(intervals.size());
    for (std::size_t i = 0; i < intervals.size(); ++i) {
      const std::uint32_t before = intervals[i].takes_over;
      if (before == none) {
        chain[i] = static_cast<std::uint32_t>(chains.size());
        chains.push_back(intervals[i]);
      } else {
        chain[i] = chain[before];
        chains[chain[i]].last = intervals[i].last;
      }
    }
    const Bytes size = place(chains, effort);
    for (std::size_t i = 0; i < intervals.size(); ++i) {
      intervals[i].offset = chains[chain[i]].offset;
    }
    return size;
  }

  const Graph& graph_;
  std::span<const Step> steps_;
  std::vector<Interval> list_;
  std::vector<std::uint32_t> open_;     // by root: its last interval
  std::vector<std::uint32_t> holders_;  // by root: live values in it
  std::vector<bool> live_;
  std::uint32_t end_;
  bool any_taken_ = false;
};

}  // namespace

Layout lay_out(const Graph& graph, const Schedule& schedule, Bytes enough) {
  constexpr double share = 0.02;  // of the time in which the result is used once
  return Intervals(graph, schedule)
      .placed({.enough = enough, .patience = share * graph.one_pass_cost()});
}

std::optional<Layout> lay_out_apart(const Graph& graph, const Schedule& schedule, Bytes packed,
                                    Bytes enough) {
  const std::vector<std::uint32_t> serial = serial_steps(graph, schedule);
  if (serial.empty()) return {};
  const Intervals intervals(graph, schedule);
  const Bytes most = std::min(enough, 2 * packed);
  for (const std::size_t count : {8, 4, 2, 1}) {
    Intervals apart = intervals;
    apart.keep_past(serial, count);
    Layout layout = apart.placed({.enough = most, .quick = true});
    if (layout.size > most) continue;
    layout.intervals = intervals.with_places_of(layout);
    return layout;
  }
  return {};
}

Layout lay_out_quickly(const Graph& graph, const Schedule& schedule, Bytes enough) {
  return Intervals(graph, schedule).placed({.enough = enough, .quick = true});
}

}  // namespace palimpsest
