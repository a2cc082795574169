#include "checkpoint/planners.h"
#include "checkpoint/engine_planner.h"

#include <algorithm>
#include <cmath>

#include "checkpoint/plan.h"
#include "checkpoint/rematerialize.h"
#include "tests/cases.h"
#include "tests/catch.h"
#include "tests/checkpoint/graphs.h"
#include "tests/checkpoint/optimum.h"

#include <rapidcheck/catch.h>

namespace planners_test {

using namespace palimpsest;
using Catch::Matchers::Contains;

namespace {

std::vector<PlannerPtr> planners_for(const Graph& graph) {
  std::vector<PlannerPtr> planners{keep_all(),
                                   square_root(),
                                   greedy(),
                                   min_cut(),
                                   fraction(0.5),
                                   automatic({.moves = 3}),
                                   search({.moves = 5}),
                                   quick()};
  for (std::uint32_t k = 1; k < 6; ++k) {
    planners.push_back(uniform({.segments = k}));
    planners.push_back(uniform({.every = k}));
  }
  const NodeId forward = graph.backward_begins().value();
  const std::vector<NodeId> needed = graph.needed_nodes();
  if (!needed.empty() && needed.back() >= forward) {
    for (std::uint32_t k = 1; k < 6; ++k) planners.push_back(binomial({.snapshots = k}));
    planners.push_back(chain());
    planners.push_back(chain({.stages = 5, .slots = 20}));
  }
  planners.push_back(selected({}));
  planners.push_back(selected({{0, forward - 1}}));
  planners.push_back(selected({{forward / 2, forward - 1}, {forward / 5, forward / 3}}));
  return planners;
}

bool overlaps(const Layout& layout) {
  for (const Interval& a : layout.intervals) {
    for (const Interval& b : layout.intervals) {
      if (&a == &b || a.last < b.first || b.last < a.first) continue;
      if (a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes) return true;
    }
  }
  return false;
}

std::string error_of(const Graph& graph, const PlannerPtr& planner) {
  try {
    make_plan(graph, *planner);
  } catch (const ArgumentError& error) {
    return error.what();
  }
  return "";
}

/// A densely connected block: each layer joins the outputs of all layers before it.
Graph dense_block(std::uint32_t layers) {
  constexpr Bytes unit = 4096;
  tests::GraphBuilder b;
  struct Layer {
    ValueId joined, normal, output;
    std::size_t reads;
  };
  std::vector<Layer> block;
  std::vector<ValueId> outputs{b.node({b.source(unit)}, unit, 10)};
  const auto bytes_of = [&](std::size_t reads) { return unit * static_cast<Bytes>(reads); };
  for (std::uint32_t k = 0; k <= layers; ++k) {
    const bool last = k == layers;
    const Bytes bytes = bytes_of(outputs.size());
    const double units = static_cast<double>(outputs.size());
    const double cheap = last ? 2 : 1 + 0.3 * units;
    const ValueId joined = b.node(outputs, bytes, cheap);
    const ValueId normal = b.node({joined}, bytes, cheap);
    const ValueId output = b.node({normal}, last ? bytes / 4 : unit, last ? 20 : 10 + 2 * units,
                                  last ? bytes / 8 : unit / 2);
    block.push_back({joined, normal, output, outputs.size()});
    outputs.push_back(output);
  }
  b.graph.set_backward_begins(b.graph.node_count());
  std::vector<std::optional<ValueId>> adjoints(outputs.size());
  adjoints.back() = b.node({outputs.back()}, bytes_of(block.back().reads) / 4, 5);
  for (std::size_t k = block.size(); k-- > 0;) {
    const Bytes bytes = bytes_of(block[k].reads);
    const ValueId adjoint = *adjoints[k + 1];
    const ValueId of_normal = b.node({adjoint, block[k].normal}, bytes, 20, bytes / 4);
    b.graph.add_target(b.node({adjoint, block[k].normal}, 64, 20));
    const ValueId of_joined = b.node({of_normal, block[k].joined}, bytes, 2);
    for (std::size_t i = 0; i < block[k].reads; ++i) {
      const ValueId piece = b.node({of_joined}, unit, 0.5);
      adjoints[i] = adjoints[i] ? b.node({*adjoints[i], piece}, unit, 0.5) : piece;
    }
  }
  b.graph.add_target(*adjoints[0]);
  return std::move(b.graph);
}

}  // namespace

TEST_CASE("planners: every schedule proposed is valid and can be laid out") {
  rc::prop("on random graphs", [](std::uint32_t seed) {
    const Graph graph = tests::random_graph(seed, 3 + seed % 20);
    for (const PlannerPtr& planner : planners_for(graph)) {
      for (const auto& [schedule, name] : planner->propose(graph, unlimited)) {
        const Simulation simulation = simulate(graph, schedule);
        const Layout layout = lay_out(graph, schedule);
        RC_ASSERT(simulation.peak <= layout.size);
        RC_ASSERT_FALSE(overlaps(layout));
      }
    }
  });
}

TEST_CASE("planners: a larger budget never costs more, the smallest one named works") {
  rc::prop("on random graphs", [](std::uint32_t seed) {
    const Graph graph = tests::random_graph(seed, 3 + seed % 20);
    const Bytes most = make_plan(graph, *keep_all()).predicted_peak();
    Bytes smallest = 0;
    try {
      smallest = make_plan(graph, *greedy(), 0).predicted_peak();
    } catch (const BudgetError& error) {
      smallest = error.smallest_feasible();
    }
    RC_ASSERT(smallest <= most);
    double cost = std::numeric_limits<double>::infinity();
    for (int k = 0; k <= 4; ++k) {
      const Bytes budget = smallest + (most - smallest) * k / 4;
      const Plan plan = make_plan(graph, *greedy(), budget);
      RC_ASSERT(plan.predicted_peak() <= budget);
      RC_ASSERT(plan.simulation.cost <= cost);
      cost = plan.simulation.cost;
    }
    RC_ASSERT(cost == graph.one_pass_cost());
  });
}

TEST_CASE("search: what is found below all proposals is known to larger budgets") {
  const Graph graph = dense_block(9);
  const PlannerPtr planner = search({.seconds = 0});
  const Bytes smallest = smallest_budget(graph, *planner);
  double cost = std::numeric_limits<double>::infinity();
  for (const Bytes more : {Bytes{0}, smallest / 24, smallest / 16}) {
    CAPTURE(more);
    const Plan plan = make_plan(graph, *planner, smallest + more);
    CHECK(plan.simulation.cost <= cost);
    cost = plan.simulation.cost;
  }
}

TEST_CASE("given: follows a schedule, and says what is wrong with one") {
  const Graph graph = tests::chain(8);
  const Schedule schedule = uniform({.segments = 3})->propose(graph, unlimited).front().schedule;
  const PlannerPtr planner = given(schedule);
  CHECK(make_plan(graph, *planner).schedule == schedule);
  CHECK(planner->key() != given({})->key());
  CHECK_THROWS_AS(make_plan(graph, *given({{Step::compute(3)}})), ScheduleError);
}

TEST_CASE("search: against the optimum of tiny graphs") {
  double sum = 0;
  double worst = 1;
  int compared = 0;
  int infeasible = 0;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    const Graph graph = tests::laid_out(tests::random_graph(seed, 5));
    if (graph.value_count() > 16) continue;
    const Bytes most = make_plan(graph, *keep_all()).predicted_peak();
    for (int part = 8; part < 20; part += 3) {
      const Bytes limit = most * part / 20;
      const std::optional<double> optimum = tests::least_cost(graph, limit);
      if (!optimum || *optimum == 0) continue;
      ++compared;
      double cost = std::numeric_limits<double>::infinity();
      for (const auto& [schedule, name] : search({.moves = 200})->propose(graph, limit)) {
        const Simulation simulation = simulate(graph, schedule);
        if (simulation.peak <= limit) cost = std::min(cost, simulation.cost);
      }
      if (!std::isfinite(cost)) {
        ++infeasible;
        continue;
      }
      REQUIRE(cost >= *optimum);
      sum += cost / *optimum;
      worst = std::max(worst, cost / *optimum);
    }
  }
  const double mean = sum / (compared - infeasible);
  INFO(compared << " compared, " << infeasible << " not found, mean " << mean << ", worst "
                << worst);
  CHECK(compared > 40);
  CHECK(infeasible * 8 < compared);
  CHECK(mean < 1.02);
}

TEST_CASE("search: the same moves give the same plan, never dearer than the greedy one") {
  for (std::uint32_t seed = 0; seed < 10; ++seed) {
    const Graph graph = tests::random_graph(seed, 30);
    const Bytes budget = make_plan(graph, *keep_all()).predicted_peak() * 6 / 10;
    try {
      const Plan greedily = make_plan(graph, *greedy(), budget);
      const Plan once = make_plan(graph, *search({.moves = 50}), budget);
      const Plan again = make_plan(graph, *search({.moves = 50}), budget);
      CHECK(once.schedule == again.schedule);
      CHECK(once.simulation.cost <= greedily.simulation.cost);
      CHECK(once.predicted_peak() <= budget);
    } catch (const BudgetError&) {
    }
  }
}

TEST_CASE("greedy: against the optimum of tiny graphs") {
  double worst = 1;
  int compared = 0;
  int infeasible = 0;
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    const Graph graph = tests::random_graph(seed, 5);
    if (graph.value_count() > 16) continue;
    std::vector<Simulation> candidates;
    for (const auto& [schedule, name] : greedy()->propose(graph, unlimited)) {
      candidates.push_back(simulate(graph, schedule));
    }
    const Bytes most = make_plan(graph, *keep_all()).simulation.peak;
    for (int part = 8; part < 20; ++part) {
      const Bytes limit = most * part / 20;
      double cost = std::numeric_limits<double>::infinity();
      for (const Simulation& candidate : candidates) {
        if (candidate.peak <= limit) cost = std::min(cost, candidate.cost);
      }
      const std::optional<double> optimum = tests::least_cost(graph, limit);
      if (std::isfinite(cost)) REQUIRE(optimum.has_value());
      if (!optimum) continue;
      ++compared;
      if (!std::isfinite(cost)) {
        ++infeasible;
        continue;
      }
      REQUIRE(cost >= *optimum);
      if (*optimum > 0) worst = std::max(worst, cost / *optimum);
    }
  }
  INFO(compared << " compared, " << infeasible << " not found, worst ratio " << worst);
  CHECK(compared > 300);
  CHECK(infeasible * 8 < compared);
  CHECK(worst < 2);
}

TEST_CASE("uniform: counts on a chain are the closed form") {
  for (const auto& [n, k] : {std::pair{12u, 1u}, {12u, 3u}, {12u, 12u}, {100u, 10u}, {1000u, 8u}}) {
    const Graph graph = tests::chain(n);
    const std::uint32_t length = n / k;
    const Plan plan = make_plan(graph, *uniform({.segments = k}));
    CHECK(plan.simulation.recomputed == (k - 1) * (length - 1));
    CHECK(make_plan(graph, *uniform({.every = length})).schedule == plan.schedule);
    CHECK(plan.recomputes(1) == (k > 1 && length > 1));
    CHECK_FALSE(plan.recomputes(n));
  }
  const Plan ten = make_plan(tests::chain(100), *square_root());
  CHECK(ten.simulation.recomputed == 81);
  // 9 boundaries, a segment of 10 values, the adjoint.
  CHECK(ten.simulation.peak == 64 * (9 + 10 + 1));
}

TEST_CASE("selected: exactly the nodes inside whose values are not read behind") {
  const Graph graph = tests::chain(8);
  const Plan plan = make_plan(graph, *selected({{2, 4}}));
  for (NodeId node = 1; node < graph.node_count(); ++node) {
    CHECK(plan.recomputes(node) == (node == 2 || node == 3));
  }
  CHECK(plan.planner == "selected segments");
}

TEST_CASE("planners: settings that make no sense are errors") {
  CHECK_THROWS_AS(uniform({}), ArgumentError);
  CHECK_THROWS_WITH(uniform({.segments = 2, .every = 2}), Contains("segments is 2 and every is 2"));
  CHECK_THROWS_AS(fraction(-0.01), ArgumentError);
  CHECK_THROWS_AS(fraction(1.01), ArgumentError);
  CHECK_THROWS_AS(fraction(std::nan("")), ArgumentError);
  CHECK_THROWS_AS(search({.seconds = -1}), ArgumentError);
  const Graph graph = tests::chain(8);
  CHECK_THAT(error_of(graph, selected({{3, 2}})), Contains("[3, 2]") && Contains("ends before"));
  CHECK_THAT(error_of(graph, selected({{2, 9}})),
             Contains("[2, 9]") && Contains("forward part, which has nodes 0 to "));
  CHECK_THAT(error_of(graph, selected({{4, 6}, {2, 4}})),
             Contains("[4, 6]") && Contains("overlaps [2, 4]"));
  CHECK_THAT(error_of(graph, selected({{2, 4}, {2, 4}})), Contains("twice"));
  for (const PlannerPtr& planner : planners_for(graph)) {
    CHECK_THAT(error_of(Graph(), planner), Contains("empty"));
  }
}

TEST_CASE("fraction: a share of what keep-all takes") {
  const Graph graph = tests::chain(64);
  CHECK(make_plan(graph, *fraction(1)).simulation.recomputed == 0);
  const Plan half = make_plan(graph, *fraction(0.5));
  CHECK(half.predicted_peak() <= half.keep_all_peak / 2);
  CHECK(half.simulation.recomputed > 0);
  CHECK(half.planner == "fraction 0.5");
  CHECK_THROWS_WITH(make_plan(graph, *fraction(0)), Contains("its own limit of 0 B"));
}

TEST_CASE("fraction: where no plan is that small, a larger fraction is named, and it works") {
  for (std::uint32_t seed = 0; seed < 4; ++seed) {
    const Graph graph = tests::random_graph(seed, 12);
    CAPTURE(seed);
    for (const Bytes budget : {unlimited, Bytes{64}}) {
      try {
        make_plan(graph, *fraction(0.05), budget);
        FAIL("a twentieth is enough");
      } catch (const BudgetError& error) {
        REQUIRE(error.own_limit());
        CHECK(error.budget() < error.smallest_feasible());
        const std::string text = error.what();
        const std::string advice = "give a fraction of at least ";
        REQUIRE_THAT(text, Contains(advice));
        const double enough = std::stod(text.substr(text.find(advice) + advice.size()));
        CHECK(make_plan(graph, *fraction(enough)).predicted_peak() <= error.smallest_feasible());
      }
    }
  }
}

TEST_CASE("segments: each node is computed again once at most") {
  // Sums x through tanh at every step; each tanh needs the whole chain before it.
  tests::GraphBuilder b;
  std::vector<ValueId> branches;
  ValueId x = b.source(64);
  for (int k = 0; k < 200; ++k) {
    x = b.node({x}, 64);
    branches.push_back(b.node({x}, 64));
  }
  b.graph.set_backward_begins(b.graph.node_count());
  ValueId adjoint = b.node({x}, 64);
  for (std::size_t k = branches.size(); k-- > 0;) adjoint = b.node({adjoint, branches[k]}, 64);
  b.graph.add_target(adjoint);
  for (const std::uint32_t count : {1u, 2u, 20u}) {
    const Plan plan = make_plan(b.graph, *uniform({.segments = count}));
    CHECK(plan.simulation.recomputed <= 400);
  }
}

TEST_CASE("make_plan: a planner's own limit never lifts the budget") {
  struct Greedy final : EnginePlanner {
    std::string name() const override { return "greedy"; }
    std::vector<Proposal> propose(const Graph& graph, Bytes budget) const override {
      return keep_all()->propose(graph, budget);
    }
    Bytes limit(Bytes keep_all_peak, Bytes) const override { return keep_all_peak; }
  };
  CHECK_THROWS_AS(make_plan(tests::chain(64), Greedy(), 64), BudgetError);
}

TEST_CASE("auto: a large graph without a backward part") {
  tests::GraphBuilder b;
  std::vector<ValueId> values{b.source(64)};
  for (int k = 0; k < 600; ++k) values.push_back(b.node({values.back()}, 64));
  ValueId sum = values.back();
  for (const int k : {1, 200, 400}) sum = b.node({sum, values[static_cast<std::size_t>(k)]}, 64);
  b.graph.add_target(sum);
  b.graph.set_backward_begins(b.graph.node_count());
  CHECK(make_plan(b.graph, *automatic(), 4 * 64).simulation.cost_ratio() > 1);
}

TEST_CASE("greedy: a chain at a tenth of its memory") {
  const Graph graph = tests::chain(1000);
  const Bytes all = make_plan(graph, *keep_all()).predicted_peak();
  const Plan plan = make_plan(graph, *greedy(), all / 10);
  CHECK(plan.predicted_peak() <= all / 10);
  CHECK(plan.compute_overhead() < 0.5);
}

TEST_CASE("greedy: what is present may take more nodes to make again than are needed") {
  tests::GraphBuilder b;
  std::vector<ValueId> chain{b.source(64)};
  for (int k = 0; k < 300; ++k) chain.push_back(b.node({chain.back()}, 640));
  for (const std::size_t k : {200, 300}) b.graph.set_present(chain[k]);
  b.graph.set_backward_begins(b.graph.node_count());
  const ValueId empty = b.node({chain[200]}, 0);
  const ValueId wide = b.node({chain[300]}, 640, 1, 3 * 640);
  b.graph.add_target(b.node({wide, chain[200], empty}, 640));
  for (const PlannerPtr& planner : {greedy(), search(), automatic({.moves = 0})}) {
    CAPTURE(planner->name());
    CHECK(make_plan(b.graph, *planner, 6 * 640 - 64).simulation.computed > 200);
    CHECK_THROWS_AS(make_plan(b.graph, *planner, 64), BudgetError);
  }
}

TEST_CASE("planners: a chain of a million nodes") {
  const Graph graph = tests::chain(500'000);
  CHECK(make_plan(graph, *square_root()).simulation.recomputed == 500'000 - 708 - 706);
}

TEST_CASE("planners: what is present and cannot be dropped is an error that names it") {
  tests::GraphBuilder b;
  const ValueId present = b.node({b.source(64)}, 6400);
  b.graph.add_target(present);
  b.graph.set_present(present);
  for (const PlannerPtr& planner :
       {automatic({.moves = 0}), automatic(), greedy(), quick(), search(), online()}) {
    CAPTURE(planner->name());
    CHECK(smallest_budget(b.graph, *planner) == 6400);
    CHECK_THROWS_AS(make_plan(b.graph, *planner, 6400 - 64), BudgetError);
  }
}

TEST_CASE("quick: the smallest budget it names works") {
  int graphs = 0;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    const Graph graph = tests::random_graph(seed, 12);
    CAPTURE(seed);
    const Bytes smallest = smallest_budget(graph, *quick());
    CHECK(make_plan(graph, *quick(), smallest).predicted_peak() <= smallest);
    graphs += smallest < make_plan(graph, *keep_all()).predicted_peak() ? 1 : 0;
  }
  CHECK(graphs > 50);
}

TEST_CASE("auto: online eviction is added only where it goes lower") {
  const std::vector<Proposal> proposals = automatic({.moves = 0})->propose(tests::chain(12), 0);
  const auto is_online = [](const Proposal& one) { return one.planner == online()->name(); };
  CHECK(std::ranges::count_if(proposals, is_online) < 5);
}

TEST_CASE("auto: no other planner has a smaller budget, and the one that it names works") {
  const auto graphs = static_cast<std::uint32_t>(cases(10));
  for (std::uint32_t seed = 0; seed < graphs; ++seed) {
    CAPTURE(seed);
    const Graph graph = tests::random_graph(seed, 16 + seed % 5);
    const PlannerPtr planner = automatic({.moves = 1});
    const Bytes smallest = smallest_budget(graph, *planner);
    for (const Bytes budget : {smallest / 2, smallest}) {
      CHECK(engine_part(planner).lowest(graph, budget)->size == smallest);
    }
    CHECK(make_plan(graph, *planner, smallest).predicted_peak() <= smallest);
    for (const PlannerPtr& other : {greedy(), chain(), online(), search({.moves = 0})}) {
      CAPTURE(other->name());
      CHECK(smallest_budget(graph, *other) >= smallest);
    }
    const std::optional<Plan> plan = find_plan(graph, *online(), smallest);
    CHECK((!plan || plan->predicted_peak() == smallest));
  }
}

}  // namespace planners_test
