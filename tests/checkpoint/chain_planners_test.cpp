#include <algorithm>
#include <array>
#include <cmath>

#include "checkpoint/chains/binomial.h"
#include "checkpoint/chains/optimal.h"
#include "checkpoint/plan.h"
#include "checkpoint/planners.h"
#include "checkpoint/planners/stage_costs.h"
#include "checkpoint/schedule.h"
#include "tests/catch.h"
#include "tests/checkpoint/graphs.h"

namespace chain_planners_test {

using namespace palimpsest;
using Catch::Matchers::Contains;

namespace {

/// A chain of unequal blocks. Each has a wide inner value that its backward reads. When `skips`,
/// the block after the next one also reads a value of every second block.
Graph blocks(std::uint32_t seed, std::uint32_t count, bool skips = false) {
  std::mt19937 random(seed);
  const auto some = [&](std::uint32_t limit) { return 1 + static_cast<Bytes>(random() % limit); };
  tests::GraphBuilder b;
  struct Block {
    ValueId input, wide, output;
    Bytes bytes;
  };
  std::vector<Block> made;
  ValueId last = b.source(64);
  for (std::uint32_t k = 0; k < count; ++k) {
    const Bytes bytes = 10 * some(9);
    std::vector<ValueId> inputs{last};
    if (skips && k % 2 == 0 && k >= 2) inputs.push_back(made[k - 2].output);
    const ValueId wide = b.node(inputs, 40 * some(9), static_cast<double>(some(20)), some(30));
    made.push_back({last, wide, b.node({wide}, bytes, static_cast<double>(some(9))), bytes});
    last = made.back().output;
  }
  ValueId adjoint = b.node({last}, 10);
  b.graph.set_backward_begins(b.graph.producer(adjoint));
  for (std::uint32_t k = count; k-- > 0;) {
    const Block& block = made[k];
    adjoint = b.node({adjoint, block.wide, block.output}, 40, 5);
    adjoint = b.node({adjoint, block.input}, block.bytes, 5);
    if (k % 3 == 0) b.graph.add_target(b.node({adjoint, block.input}, 16));
  }
  b.graph.add_target(adjoint);
  return std::move(b.graph);
}

std::string error_of(const Graph& graph, const PlannerPtr& planner) {
  try {
    planner->propose(graph, unlimited);
  } catch (const ArgumentError& error) {
    return error.what();
  }
  return "";
}

/// The lowest cost among the planner's schedules within `limit`.
double least_cost(const Graph& graph, const PlannerPtr& planner, Bytes limit) {
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [schedule, name] : planner->propose(graph, unlimited)) {
    const Simulation simulation = simulate(graph, schedule);
    if (simulation.peak <= limit) least = std::min(least, simulation.cost);
  }
  return least;
}

}  // namespace

TEST_CASE("binomial planner: a chain's nodes run as often as the closed form says") {
  for (const auto& [n, s] : {std::pair{10u, 3u}, {10u, 1u}, {100u, 5u}, {200u, 4u}, {30u, 30u}}) {
    CAPTURE(n, s);
    const Plan plan = make_plan(tests::chain(n), *binomial({.snapshots = s}));
    const std::uint64_t advanced = binomial_forward_steps(n, s) - n;
    // The backward part reads the inputs of the steps and the last output. So only the last step
    // runs for the sake of its output.
    CHECK(plan.simulation.computed == advanced + 1 + n);
    CHECK(plan.simulation.recomputed == advanced + 1 - n);
    // The snapshots without the first one, which the user holds; the current value and its
    // successor.
    CHECK(plan.simulation.peak <= 64 * (s - 1 + 2 + 1));
  }
}

TEST_CASE("binomial planner: what is present is not made again for nothing") {
  Graph graph = tests::chain(50);
  for (ValueId value = 1; value <= 50; ++value) graph.set_present(value);
  const Plan plan = make_plan(graph, *binomial({.snapshots = 4}));
  CHECK(plan.simulation.computed == binomial_forward_steps(50, 4) - 50 + 1 + 50 - 50);
  CHECK(make_plan(graph, *binomial({.snapshots = 50})).simulation.recomputed == 0);
}

TEST_CASE("chain planner: as good as binomial on equal steps") {
  const Graph graph = tests::chain(60);
  for (const std::uint32_t s : {2u, 3u, 5u, 10u, 20u}) {
    const Plan plan = make_plan(graph, *binomial({.snapshots = s}));
    CHECK(least_cost(graph, chain(), plan.simulation.peak) <= 1.05 * plan.simulation.cost);
  }
}

TEST_CASE("chain planner: costs that no number of single precision holds") {
  for (const double huge : {1.0, 1e300}) {
    for (const double tiny : {1e-300, 1e-30}) {
      CAPTURE(huge, tiny);
      tests::GraphBuilder b;
      std::vector<ValueId> values{b.source(64)};
      for (int k = 0; k < 40; ++k) {
        values.push_back(b.node({values.back()}, 64, k % 3 == 0 ? huge : tiny));
      }
      ValueId adjoint = values.back();
      b.graph.set_backward_begins(b.graph.node_count());
      for (std::size_t k = 40; k-- > 0;) adjoint = b.node({adjoint, values[k]}, 64, tiny);
      b.graph.add_target(adjoint);
      for (const PlannerPtr& planner : {chain(), automatic({.moves = 0})}) {
        const Plan plan = make_plan(b.graph, *planner, 64 * 25);
        CHECK(plan.predicted_peak() <= 64 * 25);
        // Cheap nodes are recomputed first, as long as that suffices.
        CHECK(plan.simulation.cost < 1.01 * plan.simulation.one_pass_cost);
      }
    }
  }
}

TEST_CASE("chain planner: the scale of the costs does not matter") {
  const auto costs = [](double scale) {
    const Graph graph = tests::chain(50, 64, scale);
    return make_plan(graph, *chain(), 64 * 12).simulation.cost_ratio();
  };
  const double ratio = costs(1);
  CHECK(ratio > 1.1);
  for (const double scale : {0x1p-900, 0x1p-140, 0x1p130, 0x1p900}) CHECK(costs(scale) == ratio);
}

TEST_CASE("chain planner: unequal blocks, against equal segments at the same peak") {
  for (const bool skips : {false, true}) {
    double ours = 0;
    double others = 0;
    for (std::uint32_t seed = 0; seed < 6; ++seed) {
      const Graph graph = blocks(seed, 30, skips);
      for (std::uint32_t segments = 2; segments <= 20; segments += 3) {
        const Plan plan = make_plan(graph, *uniform({.segments = segments}));
        const double one_pass = plan.simulation.one_pass_cost;
        ours += least_cost(graph, chain(), plan.simulation.peak) - one_pass;
        others += plan.simulation.cost - one_pass;
      }
    }
    CAPTURE(skips, ours, others);
    CHECK(ours < 0.7 * others);
  }
}

TEST_CASE("chain planner: costs fall with the budget, to none") {
  const Graph graph = blocks(1, 40);
  const std::vector<Proposal> schedules = chain()->propose(graph, unlimited);
  CHECK(schedules.size() > 10);
  CHECK(chain()->propose(graph, 1000) == schedules);
  double last = std::numeric_limits<double>::infinity();
  const Bytes all = make_plan(graph, *keep_all()).predicted_peak();
  for (int part = 4; part <= 10; ++part) {
    const double cost = make_plan(graph, *chain(), all * part / 10).simulation.cost;
    CHECK(cost <= last);
    last = cost;
  }
  CHECK(last == graph.one_pass_cost());
  CHECK_THROWS_AS(make_plan(graph, *chain(), all / 20), BudgetError);
}

TEST_CASE("stages: cut at articulation points, backward nodes beside their forward ones") {
  const Graph graph = blocks(2, 12, true);
  const Stages stages(graph, "test", {});
  REQUIRE(stages.count() > 3);
  std::size_t nodes = 0;
  for (std::size_t k = 0; k < stages.count(); ++k) {
    for (const NodeId node : stages.forward(k)) CHECK_FALSE(stages.is_backward(node));
    for (const NodeId node : stages.backward(k)) {
      CHECK(stages.is_backward(node));
      for (const ValueId input : graph.inputs(node)) {
        if (graph.is_source_value(input)) continue;
        const std::uint32_t made = stages.stage_of(graph.producer(input));
        CHECK((stages.is_backward(graph.producer(input)) ? made >= k : made <= k + 3));
      }
    }
    nodes += stages.forward(k).size() + stages.backward(k).size();
  }
  CHECK(nodes == graph.needed_nodes().size());
}

TEST_CASE("stages: what they take on a chain") {
  const Graph graph = tests::chain(9, 64);
  const Stages stages(graph, "test", {});
  REQUIRE(stages.count() == 9);
  const std::vector<ChainStage> costs = measure_stages(stages, 4).chain;
  check_chain(costs);
  for (std::uint32_t k = 0; k < 9; ++k) {
    const bool last = k == 8;
    CAPTURE(k);
    CHECK(costs[k].forward == (last ? 0 : 1));
    CHECK(costs[k].output == (last ? 0 : 64));
    CHECK(costs[k].forward_peak == (last ? 0 : 64));
    CHECK(costs[k].gradient == (last ? 0 : 64));
    CHECK(costs[k].records.front().saved == 64);
    // The adjoint of the first stage reads the user's value, so it need not wait for its turn.
    CHECK(costs[k].records.front().backward == (k == 0 ? 0 : k == 1 ? 2 : 1));
  }
}

TEST_CASE("stages: less saved takes longer, and what is estimated holds") {
  int records = 0;
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const Graph graph = blocks(seed, 24);
    const Stages stages(graph, "test", {.most_stages = 2 + seed});
    const StageCosts costs = measure_stages(stages, 5);
    check_chain(costs.chain);
    double one_pass = 0;
    for (const ChainStage& stage : costs.chain) {
      one_pass += stage.records[0].forward + stage.records[0].backward;
      for (std::size_t r = 1; r < stage.records.size(); ++r) {
        const ChainStage::Record& more = stage.records[r - 1];
        const ChainStage::Record& less = stage.records[r];
        CHECK(less.saved < more.saved);
        CHECK(less.forward <= more.forward);
        CHECK(less.backward >= more.backward);
        ++records;
      }
    }
    CHECK(one_pass == graph.one_pass_cost());
    const OptimalChain chain(costs.chain, unlimited, {.bounded = false});
    for (int part = 0; part <= 4; ++part) {
      const Bytes range = chain.largest_budget() - chain.smallest_budget();
      const ChainPlan plan = chain.plan(chain.smallest_budget() + range * part / 4);
      StageOrder order(graph);
      for (const auto& [kind, stage, record] : plan.operations) {
        const bool backward = kind == ChainOperation::Kind::backward;
        order.run(backward ? std::span<const NodeId>(costs.backward[stage][record])
                           : stages.forward(stage));
      }
      const Simulation simulation = simulate(graph, drop_after_last_use(graph, order.nodes()));
      CHECK(simulation.peak <= plan.peak);
      CHECK(simulation.cost <= plan.cost);
      CHECK(simulation.cost >= 0.9 * plan.cost);
    }
  }
  CHECK(records > 100);
}

TEST_CASE("stages: at most as many as asked for, where fewest bytes cross") {
  tests::GraphBuilder b;
  std::vector<ValueId> values{b.source()};
  for (std::uint32_t k = 0; k < 64; ++k)
    values.push_back(b.node({values.back()}, k % 8 == 3 ? 1 : 9));
  b.graph.set_backward_begins(b.graph.node_count());
  ValueId adjoint = values.back();
  for (std::uint32_t k = 64; k-- > 0;) adjoint = b.node({adjoint, values[k]}, 9);
  b.graph.add_target(adjoint);
  const Stages stages(b.graph, "test", {.most_stages = 9});
  CHECK(stages.count() == 9);
  for (std::size_t k = 0; k + 1 < stages.count(); ++k) {
    CHECK(b.graph.bytes(b.graph.first_output(stages.forward(k).back())) == 1);
  }
  CHECK(Stages(b.graph, "test", {.most_stages = 1}).count() == 1);
}

TEST_CASE("chain planners: settings and graphs that make no sense are errors") {
  CHECK_THROWS_AS(binomial({}), ArgumentError);
  CHECK_THROWS_AS(chain({.stages = 0}), ArgumentError);
  CHECK_THROWS_AS(chain({.slots = 0}), ArgumentError);
  tests::GraphBuilder b;
  b.graph.add_target(b.node({b.source()}, 8));
  Graph said = b.graph;
  said.set_backward_begins(said.node_count());
  for (const Graph& graph : {b.graph, said}) {
    CHECK_THAT(error_of(graph, chain()), Contains("[chain]") && Contains("no backward part"));
    CHECK_THAT(error_of(graph, binomial({.snapshots = 2})), Contains("[binomial]"));
  }
  CHECK_THAT(error_of(tests::chain(100'000), binomial({.snapshots = 1})),
             Contains("give more snapshots"));
}

TEST_CASE("chain planner: values that take nothing") {
  const Graph graph = tests::chain(10, 0);
  for (const Proposal& proposal : chain()->propose(graph, unlimited)) {
    CHECK(simulate(graph, proposal.schedule).peak == 0);
  }
}

TEST_CASE("chain planners: a chain of a million nodes") {
  const Graph graph = tests::chain(500'000);
  const std::vector<Proposal> schedules = binomial({.snapshots = 20})->propose(graph, unlimited);
  CHECK(simulate(graph, schedules.front().schedule).recomputed ==
        binomial_forward_steps(500'000, 20) - 500'000 + 1 - 500'000);
  const Graph shorter = tests::chain(100'000);
  CHECK(std::ranges::any_of(chain()->propose(shorter, unlimited), [&](const Proposal& proposal) {
    return simulate(shorter, proposal.schedule).recomputed > 100'000;
  }));
}

}  // namespace chain_planners_test
