#include "checkpoint/schedule.h"

#include "checkpoint/planning_stop.h"

#include <algorithm>
#include <ostream>

namespace palimpsest {

namespace {

std::string describe(const Graph& graph, const Step& step) {
  const std::string id = std::to_string(step.id);
  if (step.kind == Step::Kind::drop) return "drop " + id;
  if (step.id >= graph.node_count()) return "compute " + id;
  return "compute " + id + " (" + graph.describe(step.id) + ")";
}

/// `12 nodes and 14 values (fused, simplified)`.
std::string describe(const ScheduledGraph& graph) {
  std::string text =
      std::to_string(graph.nodes) + " nodes and " + std::to_string(graph.values) + " values";
  if (!graph.form) return text;
  return text + (graph.form->fuse ? " (fused" : " (not fused") +
         (graph.form->simplify ? ", simplified)" : ", not simplified)");
}

/// Simulates a schedule, step by step.
class Player {
 public:
  Player(const Graph& graph, const Schedule& schedule)
      : graph_(graph),
        schedule_(schedule),
        live_(graph.value_count()),
        holders_(graph.value_count()),
        taken_(graph.value_count()),
        times_(graph.node_count()) {
    for (ValueId value = 0; value < graph.value_count(); ++value) {
      if (graph.is_source_value(value) || graph.is_present(value)) revive(value);
    }
    result_.peak = bytes_;
    result_.timeline.reserve(schedule.steps.size());
  }

  Simulation play() {
    for (const Step& step : schedule_.steps) {
      step.kind == Step::Kind::compute ? compute(step.id) : drop(step.id);
    }
    finish();
    // Summed by node, so that schedules of the same work in different orders have bit-identical
    // costs.
    for (NodeId node = 0; node < graph_.node_count(); ++node) {
      result_.cost += graph_.cost(node) * times_[node];
    }
    result_.one_pass_cost = graph_.one_pass_cost();
    return std::move(result_);
  }

 private:
  void compute(NodeId node) {
    if (node >= graph_.node_count()) {
      fail("the node does not exist; the graph has " + std::to_string(graph_.node_count()) +
           " nodes");
    }
    require(!graph_.is_source(node), "a source is never computed; read its values instead");
    for (const ValueId input : graph_.inputs(node)) {
      if (!live_[input]) fail("input value " + name(input) + " is not live; compute it first");
    }
    candidates_.clear();
    for (std::uint32_t i = 0; i < graph_.output_count(node); ++i) {
      const ValueId output = graph_.first_output(node) + i;
      const ValueId root = graph_.possible_donor(output);
      if (root != none && holders_[output] == 0) candidates_.push_back(root);
      revive(output);
    }
    for (const ValueId root : candidates_) take_over(root);
    record(bytes_ + graph_.workspace(node));
    ++result_.computed;
    if (times_[node]++ > 0) ++result_.recomputed;
  }

  void drop(ValueId value) {
    if (value >= graph_.value_count()) {
      fail("the value does not exist; the graph has " + std::to_string(graph_.value_count()) +
           " values");
    }
    require(!graph_.is_source_value(value), "a source is never dropped; leave this step out");
    require(live_[value], "the value is not live; compute it first, or leave this step out");
    record(bytes_);
    live_[value] = false;
    const ValueId root = graph_.storage(value);
    if (--holders_[root] > 0) return;
    if (!taken_[root]) bytes_ -= graph_.bytes(root);
    taken_[root] = false;
  }

  void finish() const {
    for (const ValueId target : graph_.targets()) {
      if (!live_[target]) {
        throw ScheduleError("[schedule] at the end target value " + name(target) +
                            " is not live; compute it and do not drop it");
      }
    }
    for (ValueId value = 0; value < graph_.value_count(); ++value) {
      if (live_[value] && !graph_.is_target(value) && !graph_.is_source_value(value)) {
        throw ScheduleError("[schedule] at the end value " + name(value) +
                            " is live but not a target; drop it after its last use");
      }
    }
  }

  void revive(ValueId value) {
    if (live_[value]) return;
    live_[value] = true;
    const ValueId root = graph_.storage(value);
    if (holders_[root]++ == 0) bytes_ += graph_.bytes(root);
  }

  void take_over(ValueId root) {
    const std::size_t at = result_.timeline.size();
    if (!is_given_up(graph_, schedule_.steps, at, root, holders_[root])) return;
    taken_[root] = true;
    bytes_ -= graph_.bytes(root);
  }

  void record(Bytes bytes) {
    result_.timeline.push_back(bytes);
    result_.peak = std::max(result_.peak, bytes);
  }

  std::string name(ValueId value) const {
    return std::to_string(value) + " (of " + graph_.describe(graph_.producer(value)) + ")";
  }

  [[noreturn]] void fail(const std::string& problem) const {
    const std::size_t at = result_.timeline.size();
    throw ScheduleError("[schedule] step " + std::to_string(at) + ", " +
                        describe(graph_, schedule_.steps[at]) + ": " + problem);
  }
  void require(bool holds, const char* problem) const {
    if (!holds) fail(problem);
  }

  const Graph& graph_;
  const Schedule& schedule_;
  Simulation result_;
  std::vector<bool> live_;
  std::vector<std::uint32_t> holders_;  // live values in the storage of this root
  std::vector<bool> taken_;             // by root: taken over, and not dropped yet
  std::vector<ValueId> candidates_;     // storages that the current node may take over
  std::vector<std::uint32_t> times_;    // by node, how often it was computed
  Bytes bytes_ = 0;
};

}  // namespace

bool is_given_up(const Graph& graph, std::span<const Step> steps, std::size_t at, ValueId root,
                 std::uint32_t live) {
  std::uint32_t dropped = 0;
  for (++at; at < steps.size() && steps[at].kind == Step::Kind::drop; ++at) {
    const ValueId value = steps[at].id;
    if (value < graph.value_count() && graph.storage(value) == root) ++dropped;
  }
  return dropped == live;
}

ScheduledGraph ScheduledGraph::of(const Graph& graph) {
  return {graph.form(), graph.node_count(), graph.value_count(), graph.wiring_hash()};
}

void require_graph(const Schedule& schedule, const Graph& graph) {
  if (!schedule.graph) return;
  const ScheduledGraph here = ScheduledGraph::of(graph);
  const ScheduledGraph& there = *schedule.graph;
  if (there.wiring == here.wiring && there.nodes == here.nodes && there.values == here.values) {
    return;
  }
  const bool same_size = there.nodes == here.nodes && there.values == here.values;
  throw ScheduleError("[schedule] the schedule is for a graph of " + describe(there) +
                      ", but this graph has " + describe(here) +
                      (same_size ? " that are wired differently" : "") +
                      "; plan this program's graph as written by write_graph, and run the schedule "
                      "on a tape of which no value has been read");
}

Simulation simulate(const Graph& graph, const Schedule& schedule) {
  PlanningStop::check();
  return Player(graph, schedule).play();
}

std::ostream& print(std::ostream& stream, const Graph& graph, const Schedule& schedule) {
  for (const Step& step : schedule.steps) stream << describe(graph, step) << '\n';
  return stream;
}

}  // namespace palimpsest
