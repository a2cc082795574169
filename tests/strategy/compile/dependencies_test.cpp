#include "checkpoint/dependencies.h"

#include <algorithm>
#include <random>

#include "checkpoint/planners.h"
#include "checkpoint/tape_graph.h"
#include "strategy/compile/fusion/lowered.h"
#include "tests/catch.h"
#include "tests/checkpoint/graphs.h"
#include "tests/strategy/random_program.h"

namespace palimpsest::dependencies_test {
namespace {

/// A random order of the steps that respects the edges.
std::vector<std::uint32_t> random_order(const Dependencies& dependencies, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint32_t> waiting, ready, order;
  for (std::uint32_t step = 0; step < dependencies.step_count(); ++step) {
    waiting.push_back(dependencies.predecessor_count(step));
    if (waiting.back() == 0) ready.push_back(step);
  }
  while (!ready.empty()) {
    std::swap(ready[random() % ready.size()], ready.back());
    const std::uint32_t step = ready.back();
    ready.pop_back();
    order.push_back(step);
    for (const std::uint32_t next : dependencies.successors(step)) {
      if (--waiting[next] == 0) ready.push_back(next);
    }
  }
  return order;
}

/// Tracks which interval holds each storage while steps run in some order.
class Storages {
 public:
  Storages(const Graph& graph, const Plan& plan, const Dependencies& dependencies)
      : graph_(graph),
        plan_(plan),
        dependencies_(dependencies),
        holder_(graph.value_count(), none) {}

  /// Runs a step and returns the intervals that hold its inputs.
  std::vector<std::uint32_t> take(std::uint32_t step) {
    std::vector<std::uint32_t> read;
    const Step& action = plan_.schedule.steps[step];
    if (action.kind == Step::Kind::compute) {
      for (const ValueId input : graph_.inputs(action.id)) {
        read.push_back(holder_[graph_.storage(input)]);
      }
      for (const std::uint32_t index : dependencies_.opened(step)) {
        for (std::uint32_t& held : holder_) {
          if (held != none && !apart(held, index)) held = none;  // overwritten
        }
        holder_[plan_.layout.intervals[index].storage] = index;
      }
    } else if (const std::uint32_t index = dependencies_.closed(step); index != none) {
      holder_[plan_.layout.intervals[index].storage] = none;
    }
    return read;
  }

  /// Whether an interval may open at a step: nothing else lies there, except a storage that is
  /// taken over.
  bool may_open(std::uint32_t index, std::uint32_t step) const {
    const ValueId output = plan_.layout.intervals[index].storage;
    ValueId taken = none;
    if (output != Interval::workspace && graph_.takes_over(output) >= 0) {
      const auto inputs = graph_.inputs(plan_.schedule.steps[step].id);
      taken = graph_.storage(inputs[static_cast<std::size_t>(graph_.takes_over(output))]);
    }
    for (ValueId root = 0; root < graph_.value_count(); ++root) {
      const std::uint32_t held = holder_[root];
      if (held == none || apart(held, index)) continue;
      if (root != taken || offset(held) != offset(index)) return false;
    }
    return true;
  }

 private:
  Bytes offset(std::uint32_t index) const { return plan_.layout.intervals[index].offset; }
  bool apart(std::uint32_t a, std::uint32_t b) const {
    return offset(a) + plan_.layout.intervals[a].bytes <= offset(b) ||
           offset(b) + plan_.layout.intervals[b].bytes <= offset(a);
  }

  const Graph& graph_;
  const Plan& plan_;
  const Dependencies& dependencies_;
  std::vector<std::uint32_t> holder_;
};

/// The same graph, with nodes slow enough to be handed to other threads.
Graph slow(Graph graph) {
  for (NodeId node = 0; node < graph.node_count(); ++node) {
    if (graph.cost(node) > 0) graph.set_cost(node, 6e-6 + 1e-6 * (node % 13));
  }
  graph.set_parallel();
  return graph;
}

Bytes bytes_at_start(const Graph& graph) {
  std::vector<bool> there(graph.value_count());
  for (ValueId value = 0; value < graph.value_count(); ++value) {
    if (graph.is_present(value)) there[graph.storage(value)] = true;
  }
  Bytes bytes = 0;
  for (ValueId root = 0; root < graph.value_count(); ++root) {
    if (there[root]) bytes += graph.bytes(root);
  }
  return bytes;
}

/// Checks that in `order` every step reads the same intervals as in the schedule. Whatever a step
/// opens lies inside the layout, apart from everything occupied that it does not take over. No more
/// bytes are live than the layout has.
void check_order(const Graph& graph, const Plan& plan, const Dependencies& dependencies,
                 const std::vector<std::uint32_t>& order) {
  std::vector<std::vector<std::uint32_t>> meant;
  Storages in_schedule(graph, plan, dependencies);
  for (std::uint32_t step = 0; step < dependencies.step_count(); ++step) {
    meant.push_back(in_schedule.take(step));
  }
  Storages storages(graph, plan, dependencies);
  Bytes live = bytes_at_start(graph);
  for (const std::uint32_t step : order) {
    std::vector<std::uint32_t> opens(dependencies.opened(step).begin(),
                                     dependencies.opened(step).end());
    if (dependencies.workspace(step) != none) opens.push_back(dependencies.workspace(step));
    for (const std::uint32_t index : opens) {
      const Interval& mine = plan.layout.intervals[index];
      REQUIRE(mine.offset + mine.bytes <= plan.layout.size);
      REQUIRE(storages.may_open(index, step));
      if (mine.takes_over == none) live += mine.bytes;
    }
    REQUIRE(live <= plan.layout.size);
    REQUIRE(storages.take(step) == meant[step]);
    for (const std::uint32_t index : {dependencies.workspace(step), dependencies.closed(step)}) {
      if (index != none) live -= plan.layout.intervals[index].bytes;
    }
  }
}

TEST_CASE("any order that respects the edges computes what was meant inside the layout") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Tape tape;
    const RandomProgram random = record_random(tape, seed, 10 + static_cast<int>(seed));
    const NodeId backward_begins = tape.node_count();
    std::vector<ValueId> targets{random.loss.id()};
    for (const Var& gradient : gradient(random.loss, random.parameters)) {
      targets.push_back(gradient.id());
    }
    const Graph single = graph_of(tape, targets, 2, backward_begins);
    const Graph grouped = Lowered::fused(tape, targets, 2, backward_begins, {}).graph();
    const auto taking_over = tests::taking_over(single, 7);
    for (const Graph& graph :
         {single, grouped, taking_over, slow(single), slow(grouped), slow(taking_over)}) {
      for (const PlannerPtr& planner : {keep_all(), uniform({.segments = 3}), square_root()}) {
        const Plan plan = make_plan(graph, *planner);
        const Dependencies dependencies(graph, plan.schedule, plan.layout);
        for (std::uint64_t order = 0; order < 5; ++order) {
          const auto steps = random_order(dependencies, 100 * seed + order);
          REQUIRE(steps.size() == dependencies.step_count());
          check_order(graph, plan, dependencies, steps);
        }
      }
    }
  }
}

TEST_CASE("what takes over waits for those who read before") {
  Graph graph;
  const Graph::Output plain{64};
  const Graph::Output taker{64, -1, 0};
  const auto add = [&](std::vector<ValueId> inputs, const Graph::Output& output, bool source) {
    return graph.add_node(inputs, {&output, 1}, {.cost = 1, .source = source});
  };
  const NodeId x = add({}, plain, true);
  const NodeId a = add({graph.first_output(x)}, plain, false);
  const NodeId reader = add({graph.first_output(a)}, plain, false);
  const NodeId last = add({graph.first_output(a)}, taker, false);
  graph.add_target(graph.first_output(reader));
  graph.add_target(graph.first_output(last));
  const Plan plan = make_plan(graph, *keep_all());
  REQUIRE(plan.layout.intervals[0].offset == plan.layout.intervals[2].offset);
  const Dependencies dependencies(graph, plan.schedule, plan.layout);
  const auto after_reader = dependencies.successors(1);
  CHECK(std::find(after_reader.begin(), after_reader.end(), 2) != after_reader.end());
}

TEST_CASE("independent work has no edge between it, reuse of memory has") {
  Graph graph;
  const Graph::Output small{64, -1};
  const NodeId source =
      graph.add_node({}, {&small, 1}, {.cost = 0, .workspace = 0, .source = true, .name = {}});
  const ValueId x = graph.first_output(source);
  const NodeId a = graph.add_node({&x, 1}, {&small, 1},
                                  {.cost = 1, .workspace = 0, .source = false, .name = {}});
  const NodeId b = graph.add_node({&x, 1}, {&small, 1},
                                  {.cost = 1, .workspace = 0, .source = false, .name = {}});
  graph.add_target(graph.first_output(a));
  graph.add_target(graph.first_output(b));
  const Plan plan = make_plan(graph, *keep_all());
  const Dependencies dependencies(graph, plan.schedule, plan.layout);
  REQUIRE(dependencies.step_count() == 2);
  CHECK(dependencies.predecessor_count(0) == 0);
  CHECK(dependencies.predecessor_count(1) == 0);
}

}  // namespace
}  // namespace palimpsest::dependencies_test
