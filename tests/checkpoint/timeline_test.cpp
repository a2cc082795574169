#include "checkpoint/planners/timeline.h"

#include <algorithm>
#include <random>

#include "checkpoint/planners/retention.h"
#include "checkpoint/rematerialize.h"
#include "checkpoint/schedule.h"
#include "tests/catch.h"
#include "tests/checkpoint/graphs.h"

#include <rapidcheck/catch.h>

namespace timeline_test {

using namespace palimpsest;

namespace {

/// A random graph whose outputs may take over inputs, and an order that recomputes some nodes.
struct Case {
  Graph graph;
  std::vector<NodeId> order;

  explicit Case(std::uint32_t seed)
      : graph(tests::laid_out(
            tests::taking_over(tests::random_graph(seed, 5 + seed % 40), seed ^ 1))) {
    std::mt19937 random(seed);
    std::vector<bool> dropped(graph.value_count());
    for (ValueId value = 0; value < graph.value_count(); ++value) {
      dropped[graph.storage(value)] = random() % 2 == 0;
    }
    order = without_useless(graph, rematerialize(graph, dropped));
  }
};

Bytes peak(const Graph& graph, const std::vector<NodeId>& order) {
  return simulate(graph, drop_after_last_use(graph, order)).peak;
}

}  // namespace

TEST_CASE("timeline: as high as the simulation while each node runs") {
  rc::prop("also where outputs take inputs over", [](std::uint32_t seed) {
    const Case one(seed);
    const Schedule schedule = drop_after_last_use(one.graph, one.order);
    const Simulation simulation = simulate(one.graph, schedule);
    std::vector<Bytes> heights;
    for (std::size_t k = 0; k < schedule.steps.size(); ++k) {
      if (schedule.steps[k].kind == Step::Kind::compute) heights.push_back(simulation.timeline[k]);
    }
    Timeline timeline(one.graph);
    timeline.read(one.order);
    RC_ASSERT(std::ranges::equal(timeline.heights(), heights));
    RC_ASSERT(timeline.least_peak() <= timeline.peak());
  });
}

TEST_CASE("timeline: an order read after another one is as high as alone") {
  rc::prop("whatever they share", [](std::uint32_t seed) {
    const Case one(seed);
    const Graph& graph = one.graph;
    std::vector<std::vector<NodeId>> orders{one.order, graph.needed_nodes()};
    std::mt19937 random(seed);
    Timeline timeline(graph);
    for (int k = 0; k < 12; ++k) {
      std::vector<NodeId> order = orders[random() % orders.size()];
      if (!order.empty()) {  // some steps twice in a row
        const auto at = order.begin() + static_cast<std::ptrdiff_t>(random() % order.size());
        order.insert(at, *at);
      }
      Timeline alone(graph);
      timeline.read(order);
      alone.read(order);
      RC_ASSERT(std::ranges::equal(timeline.heights(), alone.heights()));
      RC_ASSERT(timeline.highest() == alone.highest());
      const auto middle = static_cast<Timeline::Position>(order.size() / 2);
      for (ValueId value = 0; value < graph.value_count(); ++value) {
        RC_ASSERT(timeline.is_live(value, middle) == alone.is_live(value, middle));
      }
      const auto same = [](const Timeline::Gap& a, const Timeline::Gap& b) {
        return a.root == b.root && a.after == b.after && a.before == b.before;
      };
      RC_ASSERT(std::ranges::equal(timeline.gaps(middle), alone.gaps(middle), same));
      orders.push_back(std::move(order));
    }
  });
}

TEST_CASE("timeline: no order is below what one node takes, or the targets together") {
  tests::GraphBuilder b;
  const ValueId source = b.source(6400);
  const ValueId first = b.node({source}, 640);
  const ValueId second = b.node({source}, 640);
  const ValueId third = b.node({first, second, first}, 64, 1, 128);
  b.graph.add_target(third);
  CHECK(Timeline(b.graph).least_peak() == 2 * 640 + 64 + 128);
  b.graph.add_target(b.node({source}, 6400));
  CHECK(Timeline(b.graph).least_peak() == 6400 + 64);
}

TEST_CASE("hold_instead: what is held keeps to the level") {
  rc::prop("also where it was taken over before", [](std::uint32_t seed) {
    const Case one(seed);
    const Bytes before = peak(one.graph, one.order);
    const Bytes keep_all = peak(one.graph, one.graph.needed_nodes());
    for (const Bytes level : {Bytes{0}, before, (before + keep_all) / 2, keep_all}) {
      const std::vector<NodeId> held = hold_instead(one.graph, one.order, level);
      RC_ASSERT(held.size() <= one.order.size());
      RC_ASSERT(peak(one.graph, held) <= std::max(level, before));
    }
  });
}

}  // namespace timeline_test
