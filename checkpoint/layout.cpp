#include "checkpoint/layout.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "checkpoint/placement.h"

namespace palimpsest {

namespace {

/// The intervals of a schedule by first step; offsets are still 0.
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
    present_ = list_.size();
    for (std::uint32_t k = 0; k < steps_.size(); ++k) {
      steps_[k].kind == Step::Kind::compute ? compute(k, steps_[k].id) : drop(k, steps_[k].id);
    }
  }

  Layout placed(const Effort& effort) const {
    Layout layout{list_};
    if (!before_.empty()) {
      layout.size = std::max(place_chains(layout.intervals, effort), most_live());
      if (layout.size <= effort.enough) return layout;
    }
    Layout apart{list_};
    apart.size = place(apart.intervals, effort);
    return before_.empty() || apart.size < layout.size ? apart : layout;
  }

 private:
  void compute(std::uint32_t k, NodeId node) {
    const std::size_t first = list_.size();
    for (std::uint32_t i = 0; i < graph_.output_count(node); ++i) {
      const ValueId output = graph_.first_output(node) + i;
      const std::uint32_t before = live_[output] ? none : taken_over(k, node, output);
      revive(output, k);
      if (before == none) continue;
      before_.resize(list_.size(), none);
      const auto others = std::span(before_).subspan(first);  // other outputs of the node
      if (std::find(others.begin(), others.end(), before) == others.end()) before_.back() = before;
    }
    if (const Bytes bytes = graph_.workspace(node); bytes > 0) {
      list_.push_back({Interval::workspace, k, k, bytes});
    }
  }

  /// The interval in whose place the output may be made: all it holds is dropped right after.
  std::uint32_t taken_over(std::uint32_t k, NodeId node, ValueId output) const {
    const int position = graph_.takes_over(output);
    if (position < 0) return none;
    const auto inputs = graph_.inputs(node);
    const ValueId root = graph_.storage(inputs[static_cast<std::size_t>(position)]);
    const auto is_there = [&](ValueId value) { return graph_.storage(value) == root; };
    if (graph_.bytes(root) == 0 || graph_.bytes(root) != graph_.bytes(output)) return none;
    if (open_[root] < present_) return none;  // it stays intact when a run is stopped
    if (std::count_if(inputs.begin(), inputs.end(), is_there) > 1) return none;
    std::uint32_t dropped = 0;
    for (++k; k < steps_.size() && steps_[k].kind == Step::Kind::drop; ++k) {
      if (is_there(steps_[k].id)) ++dropped;
    }
    return dropped == holders_[root] ? open_[root] : none;
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
  Bytes place_chains(std::span<Interval> intervals, const Effort& effort) const {
    std::vector<Interval> chains;
    std::vector<std::uint32_t> chain(intervals.size());
    for (std::size_t i = 0; i < intervals.size(); ++i) {
      const std::uint32_t before = i < before_.size() ? before_[i] : none;
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

  /// Most bytes live at once, as a simulation counts them.
  Bytes most_live() const {
    std::vector<Bytes> live(steps_.size() + 2);
    for (const Interval& interval : list_) {
      live[interval.first] += interval.bytes;
      live[interval.last + 1] -= interval.bytes;
    }
    std::partial_sum(live.begin(), live.end(), live.begin());
    return *std::max_element(live.begin(), live.end());
  }

  const Graph& graph_;
  std::span<const Step> steps_;
  std::vector<Interval> list_;
  std::vector<std::uint32_t>
      before_;                       // by interval: the one it takes over; as far as there are any
  std::vector<std::uint32_t> open_;  // by root: its last interval
  std::vector<std::uint32_t> holders_;  // by root: live values in it
  std::vector<bool> live_;
  std::uint32_t end_;
  std::size_t present_ = 0;  // intervals of what is there at the start
};

}  // namespace

Layout lay_out(const Graph& graph, const Schedule& schedule, Bytes enough) {
  constexpr double share = 0.02;  // of the time in which the result is used once
  return Intervals(graph, schedule)
      .placed({.enough = enough, .patience = share * graph.one_pass_cost()});
}

Layout lay_out_quickly(const Graph& graph, const Schedule& schedule, Bytes enough) {
  return Intervals(graph, schedule).placed({.enough = enough, .quick = true});
}

}  // namespace palimpsest
