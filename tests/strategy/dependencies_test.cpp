#include "strategy/dependencies.h"

#include <random>

#include "checkpoint/planners.h"
#include "checkpoint/tape_graph.h"
#include "tests/catch.h"
#include "tests/strategy/random_program.h"

namespace palimpsest {
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

/// Which interval holds each storage while steps are taken in some order.
class Storages {
 public:
  Storages(const Graph& graph, const Plan& plan, const Dependencies& dependencies)
      : graph_(graph),
        plan_(plan),
        dependencies_(dependencies),
        holder_(graph.value_count(), none) {}

  /// Takes a step and gives the intervals that its inputs lie in.
  std::vector<std::uint32_t> take(std::uint32_t step) {
    std::vector<std::uint32_t> read;
    const Step& action = plan_.schedule.steps[step];
    if (action.kind == Step::Kind::compute) {
      for (const ValueId input : graph_.inputs(action.id)) {
        read.push_back(holder_[graph_.storage(input)]);
      }
      for (const std::uint32_t index : dependencies_.opened(step)) {
        holder_[plan_.layout.intervals[index].storage] = index;
      }
    } else if (const std::uint32_t index = dependencies_.closed(step); index != none) {
      holder_[plan_.layout.intervals[index].storage] = none;
    }
    return read;
  }

  /// The intervals occupied now.
  std::vector<std::uint32_t> occupied() const {
    std::vector<std::uint32_t> list;
    for (const std::uint32_t index : holder_) {
      if (index != none) list.push_back(index);
    }
    return list;
  }

 private:
  const Graph& graph_;
  const Plan& plan_;
  const Dependencies& dependencies_;
  std::vector<std::uint32_t> holder_;
};

/// In `order`, every step reads the intervals it reads in the order of the schedule, and whatever a
/// step opens lies inside the layout, apart from everything occupied.
void check_order(const Graph& graph, const Plan& plan, const Dependencies& dependencies,
                 const std::vector<std::uint32_t>& order) {
  std::vector<std::vector<std::uint32_t>> meant;
  Storages in_schedule(graph, plan, dependencies);
  for (std::uint32_t step = 0; step < dependencies.step_count(); ++step) {
    meant.push_back(in_schedule.take(step));
  }
  Storages storages(graph, plan, dependencies);
  for (const std::uint32_t step : order) {
    std::vector<std::uint32_t> opens(dependencies.opened(step).begin(),
                                     dependencies.opened(step).end());
    if (dependencies.workspace(step) != none) opens.push_back(dependencies.workspace(step));
    for (const std::uint32_t index : opens) {
      const Interval& mine = plan.layout.intervals[index];
      REQUIRE(mine.offset + mine.bytes <= plan.layout.size);
      for (const std::uint32_t other : storages.occupied()) {
        const Interval& theirs = plan.layout.intervals[other];
        REQUIRE((mine.offset + mine.bytes <= theirs.offset ||
                 theirs.offset + theirs.bytes <= mine.offset));
      }
    }
    REQUIRE(storages.take(step) == meant[step]);
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
    const Graph graph = graph_of(tape, targets, 2, backward_begins);
    for (const PlannerPtr& planner : {keep_all(), uniform({.segments = 3}), square_root()}) {
      const Plan plan = make_plan(graph, *planner);
      const Dependencies dependencies(graph, plan);
      for (std::uint64_t order = 0; order < 5; ++order) {
        const auto steps = random_order(dependencies, 100 * seed + order);
        REQUIRE(steps.size() == dependencies.step_count());
        check_order(graph, plan, dependencies, steps);
      }
    }
  }
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
  const Dependencies dependencies(graph, plan);
  REQUIRE(dependencies.step_count() == 2);
  CHECK(dependencies.predecessor_count(0) == 0);
  CHECK(dependencies.predecessor_count(1) == 0);
}

}  // namespace
}  // namespace palimpsest
