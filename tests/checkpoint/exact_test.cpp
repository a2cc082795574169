#include <algorithm>
#include <cmath>

#include "checkpoint/chains/binomial.h"
#include "checkpoint/lower_bound.h"
#include "checkpoint/plan.h"
#include "checkpoint/planners.h"
#include "checkpoint/schedule.h"
#include "tests/catch.h"
#include "tests/checkpoint/graphs.h"
#include "tests/checkpoint/optimum.h"
#include "tests/error_of.h"

namespace exact_test {

using namespace palimpsest;
using Catch::Matchers::WithinRel;

namespace {

const PlannerPtr live = exact({.lay_out = false});

constexpr double infinity = std::numeric_limits<double>::infinity();

/// A graph of at most 9 nodes in addition to sources, with many unusual features. It has nodes
/// without cost, values without bytes, views of views and of sources, several outputs, targets
/// anywhere, workspaces and present values.
Graph odd_graph(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t limit) {
    return static_cast<std::uint32_t>(random() % limit);
  };
  Graph graph;
  const bool with_present = below(2) == 0;
  const Graph::Output user{7, -1};
  graph.add_node({}, {&user, 1}, {.source = true});
  const std::uint32_t nodes = 4 + below(6);
  for (std::uint32_t k = 0; k < nodes && graph.value_count() < 12; ++k) {
    std::vector<ValueId> inputs;
    for (std::uint32_t i = 1 + below(3); i > 0; --i) {
      const std::uint32_t back = below(2) == 0 ? 3 : graph.value_count();
      inputs.push_back(graph.value_count() - 1 - below(std::min(back, graph.value_count())));
    }
    std::vector<Graph::Output> outputs;
    for (std::uint32_t i = below(4) == 0 ? 2 + below(2) : 1; i > 0; --i) {
      const bool view = below(4) == 0;
      const auto position = static_cast<int>(below(static_cast<std::uint32_t>(inputs.size())));
      outputs.push_back({below(6), view ? position : -1});
    }
    graph.add_node(inputs, outputs,
                   {.cost = below(5) == 0 ? 0.0 : 0.1 * (1 + below(8)),
                    .workspace = below(4) == 0 ? below(8) : 0});
  }
  for (ValueId value = 1; value < graph.value_count(); ++value) {
    if (below(6) == 0) graph.add_target(value);
    if (with_present && below(4) == 0) graph.set_present(value);
  }
  graph.add_target(graph.value_count() - 1);
  return graph;
}

Bytes keep_all_peak(const Graph& graph) {
  return simulate(graph, drop_after_last_use(graph, graph.needed_nodes())).peak;
}

/// The best of a planner's proposals.
struct Best {
  double cost = infinity;  ///< lowest cost within the limit of live bytes
  Bytes peak = unlimited;
};
Best best_of(const Graph& graph, const PlannerPtr& planner, Bytes limit) {
  Best best;
  for (const auto& [schedule, name] : planner->propose(graph, limit)) {
    const Simulation simulation = simulate(graph, schedule);
    if (simulation.peak <= limit) best.cost = std::min(best.cost, simulation.cost);
    best.peak = std::min(best.peak, simulation.peak);
  }
  return best;
}

/// The smallest budget for which brute force finds a schedule.
Bytes smallest_feasible(const Graph& graph) {
  Bytes least = 0;
  for (Bytes most = keep_all_peak(graph); least < most;) {
    const Bytes between = (least + most) / 2;
    if (tests::least_cost(graph, between)) {
      most = between;
    } else {
      least = between + 1;
    }
  }
  return least;
}

struct Compared {
  int graphs = 0;
  int recomputing = 0;
};

void compare(const Graph& graph, Compared& compared) {
  const Bytes smallest = smallest_feasible(graph);
  const Bytes most = keep_all_peak(graph);
  CHECK(best_of(graph, live, smallest - 1).peak == smallest);
  ++compared.graphs;
  constexpr int parts = 4;
  for (int part = 0; part <= parts; ++part) {
    const Bytes budget = smallest + (most - smallest) * part / parts;
    if (part > 0 && (most - smallest) * part / parts == (most - smallest) * (part - 1) / parts) {
      continue;
    }
    const double optimum = tests::least_cost(graph, budget).value();
    CAPTURE(budget);
    CHECK_THAT(best_of(graph, live, budget).cost, WithinRel(optimum, 1e-12));
    CHECK(lower_bound(graph, budget) <= optimum * (1 + 1e-12));
    compared.recomputing += optimum > graph.one_pass_cost() * (1 + 1e-9) ? 1 : 0;
  }
}

}  // namespace

TEST_CASE("exact: what brute force finds, on graphs out of the ordinary") {
  Compared compared;
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    compare(odd_graph(seed), compared);
  }
  CHECK(compared.recomputing > 150);
}

TEST_CASE("exact: what brute force finds, where outputs may take inputs over") {
  Compared compared;
  int lower = 0;
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    const Graph odd = odd_graph(seed);
    const Graph graph = tests::taking_over(odd, seed);
    compare(graph, compared);
    const Graph apart = tests::taking_over(odd, seed, true);
    lower += smallest_feasible(graph) < smallest_feasible(apart) ? 1 : 0;
  }
  CHECK(compared.recomputing > 100);
  CHECK(lower > 50);
}

TEST_CASE("exact: what brute force finds, on graphs with a backward part") {
  Compared compared;
  for (std::uint32_t seed = 0; compared.graphs < 150; ++seed) {
    const Graph graph = tests::random_graph(seed, 3 + seed % 3);
    if (graph.value_count() > 13) continue;
    CAPTURE(seed);
    compare(graph, compared);
  }
  CHECK(compared.recomputing > 150);
}

TEST_CASE("exact: chains of equal steps take the closed form") {
  for (const auto& [n, s] : {std::pair{6u, 1u}, {10u, 2u}, {16u, 2u}, {16u, 3u}, {12u, 5u}}) {
    CAPTURE(n, s);
    const Graph graph = tests::chain(n, 1);
    // The snapshots without the first one; and a value, its successor and an adjoint.
    const auto forward = static_cast<double>(binomial_forward_steps(n, s) - n + 1);
    CHECK(best_of(graph, live, s + 2).cost == forward + n);
  }
}

TEST_CASE("exact: no planner is better, no lower bound higher") {
  int graphs = 0;
  int dearer = 0;
  for (std::uint32_t seed = 0; graphs < 12; ++seed) {
    const Graph graph = tests::random_graph(seed, 4 + seed % 4);
    const std::vector<NodeId> needed = graph.needed_nodes();
    if (needed.size() < 8 || needed.back() < graph.backward_begins()) continue;
    CAPTURE(seed);
    ++graphs;
    const Bytes smallest = best_of(graph, live, 0).peak;
    const Bytes most = keep_all_peak(graph);
    for (int part = 0; part <= 2; ++part) {
      const Bytes budget = smallest + (most - smallest) * part / 2;
      const double optimum = best_of(graph, live, budget).cost;
      CHECK(lower_bound(graph, budget) <= optimum);
      CHECK(optimum >= graph.one_pass_cost());
      if (part == 2) CHECK(optimum == graph.one_pass_cost());
      for (const PlannerPtr& planner :
           {keep_all(), greedy(), search({.moves = 50, .lay_out = false}), automatic({.moves = 5}),
            min_cut(), chain(), binomial({.snapshots = 2}), square_root(), uniform({.every = 3})}) {
        CAPTURE(planner->name());
        const Best best = best_of(graph, planner, budget);
        CHECK(best.cost >= optimum * (1 - 1e-12));
        CHECK(best.peak >= smallest);
        dearer += best.cost > optimum * (1 + 1e-9) ? 1 : 0;
      }
    }
  }
  CHECK(dearer > 30);
}

TEST_CASE("auto: the optimum of small graphs, unless no move may be made") {
  int at_once_dearer = 0;
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    const Graph graph = tests::random_graph(seed, 4 + seed % 4);
    CAPTURE(seed);
    const Bytes smallest = best_of(graph, live, 0).peak;
    const Bytes most = keep_all_peak(graph);
    CHECK(best_of(graph, automatic({.lay_out = false}), smallest - 1).peak == smallest);
    for (int part = 0; part <= 2; ++part) {
      const Bytes budget = smallest + (most - smallest) * part / 3;
      const double optimum = best_of(graph, live, budget).cost;
      const auto cost = [&](SearchSettings settings) {
        settings.lay_out = false;
        return best_of(graph, automatic(settings), budget).cost;
      };
      CHECK(cost({}) <= optimum * (1 + 1e-12));
      CHECK(cost({.seconds = 0.5}) <= optimum * (1 + 1e-12));
      at_once_dearer += cost({.moves = 0}) > optimum * (1 + 1e-9) ? 1 : 0;
    }
  }
  CHECK(at_once_dearer > 0);
}

TEST_CASE("auto: costs no more than the search alone, layouts and all") {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const Graph graph = tests::laid_out(tests::random_graph(seed, 5 + seed % 5));
    CAPTURE(seed);
    const Bytes smallest = smallest_budget(graph, *search({.moves = 0}));
    const Bytes most = make_plan(graph, *keep_all()).predicted_peak();
    for (int part = 0; part <= 3; ++part) {
      const Bytes budget = smallest + (most - smallest) * part / 4;
      const double alone = make_plan(graph, *search({.moves = 100}), budget).simulation.cost;
      CHECK(make_plan(graph, *automatic({.moves = 100}), budget).simulation.cost <=
            alone * (1 + 1e-12));
    }
  }
}

TEST_CASE("exact: plans fit, layout and all, down to the smallest budget") {
  int plans = 0;
  int optimal = 0;
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    const Graph graph = tests::laid_out(tests::random_graph(seed, 4));
    CAPTURE(seed);
    const Bytes least = best_of(graph, live, 0).peak;
    CHECK_THROWS_AS(make_plan(graph, *exact(), least - 1), BudgetError);
    const Bytes smallest = smallest_budget(graph, *exact());
    CHECK(smallest <= least * 5 / 4);
    const Bytes most = make_plan(graph, *keep_all()).predicted_peak();
    for (int part = 0; part <= 3; ++part) {
      const Bytes budget = smallest + (most - smallest) * part / 3;
      const Plan plan = make_plan(graph, *exact(), budget);
      CHECK(plan.predicted_peak() <= budget);
      ++plans;
      optimal += plan.simulation.cost <= best_of(graph, live, budget).cost ? 1 : 0;
    }
  }
  INFO(optimal << " of " << plans << " plans cost no more than the optimum by live bytes");
  CHECK(optimal * 20 > plans * 19);
}

TEST_CASE("exact: plans never cost more than those of other planners, layout and all") {
  int compared = 0;
  for (std::uint32_t seed = 0; seed < 6; ++seed) {
    const Graph graph = tests::random_graph(seed, 5);
    CAPTURE(seed);
    const Bytes most = make_plan(graph, *keep_all()).predicted_peak();
    for (const PlannerPtr& other : {automatic(), greedy()}) {
      for (int part = 10; part < 20; part += 3) {
        const std::optional<Plan> plan = find_plan(graph, *other, most * part / 20);
        if (!plan) continue;
        ++compared;
        CAPTURE(other->name(), part);
        CHECK(make_plan(graph, *exact(), most * part / 20).simulation.cost <=
              plan->simulation.cost);
      }
    }
  }
  CHECK(compared > 10);
}

TEST_CASE("exact: graphs that are too large are errors that say what to do") {
  const auto plan = [](std::uint32_t steps, ExactSettings settings) {
    return [=] { make_plan(tests::chain(steps), *exact(settings), 64 * 8); };
  };
  check_error(plan(33, {}), {"[exact] more than 64 values", "use another planner such as auto"});
  check_error(plan(30, {.most_sets = 20}), {"[exact] 60 nodes", "20 sets", "raise most_sets"});
  check_error([] { exact({.most_sets = 0}); }, {"[exact]", "most_sets is 0"});
  CHECK(make_plan(tests::chain(33), *exact()).simulation.recomputed == 0);
  // Sources, and nodes that no target depends on, do not count.
  tests::GraphBuilder b;
  std::vector<ValueId> read;
  for (int k = 0; k < 64; ++k) b.node({read.emplace_back(b.source(8))}, 8);
  b.graph.add_target(b.node(read, 8));
  CHECK(exact()->propose(b.graph, 64).size() == 1);
}

}  // namespace exact_test
