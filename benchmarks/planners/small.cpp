#include <benchmark/benchmark.h>

#include <algorithm>
#include <vector>

#include "benchmarks/planners/parts.h"
#include "tests/checkpoint/graphs.h"

namespace palimpsest::benchmarks {
namespace {

using benchmark::State;

constexpr int graphs = 200;
constexpr std::uint32_t most_nodes = 30;
constexpr int percents[] = {10, 30, 50, 70, 90};
constexpr const char* name = "small/graphs";

/// A random graph with a forward and a backward part, of about 10 nodes or more.
Graph small_graph(std::uint32_t seed) { return tests::random_graph(seed, 5 + seed % 9); }

/// The exact planner. It gives up with an `ArgumentError` on graphs that would take it half a
/// minute.
PlannerPtr oracle() { return exact({.most_sets = 2'000'000, .lay_out = false}); }

/// The lowest peak among the proposals of `planner` for a budget of 0.
Bytes lowest_peak(const Graph& graph, const Planner& planner) {
  Bytes lowest = unlimited;
  for (const Proposal& proposal : planner.propose(graph, 0)) {
    lowest = std::min(lowest, simulate(graph, proposal.schedule).peak);
  }
  return lowest;
}

/// Costs and smallest budgets relative to the optimum.
struct Comparison {
  int graphs = 0;
  int budgets = 0;
  int feasible = 0;
  int optimal = 0;
  double sum = 0;
  double worst = 0;
  double smallest = 0;  ///< sum over the graphs of the smallest budget over the optimal one

  void add(double least, double found) {
    ++budgets;
    if (found == infeasible) return;
    const double share = least > 0 ? found / least : 1;
    ++feasible;
    optimal += share < 1 + 1e-9 ? 1 : 0;
    sum += share;
    worst = std::max(worst, share);
  }
};

/// Compares `auto` with the optimum at five budgets of live bytes between the smallest feasible one
/// and keep-all. Also compares its smallest budget.
void compare(const Graph& graph, Comparison& comparison) {
  std::vector<std::pair<Bytes, double>> optima;
  const Bytes first = lowest_peak(graph, *oracle());
  const Bytes last = lowest_peak(graph, *keep_all());
  for (const int level : percents) {
    const Bytes budget = first + (last - first) * level / 100;
    optima.emplace_back(budget, cheapest(graph, *oracle(), budget));
  }
  for (const auto& [budget, least] : optima) {
    comparison.add(least, cheapest(graph, *automatic({.lay_out = false}), budget));
  }
  const Bytes smallest = lowest_peak(graph, *automatic({.lay_out = false}));
  comparison.smallest += static_cast<double>(smallest) / static_cast<double>(first);
  ++comparison.graphs;
}

void compare_all(State& state) {
  Comparison comparison;
  std::uint32_t left_out = 0;
  for (auto _ : state) {
    for (std::uint32_t seed = 1; comparison.graphs < graphs; ++seed) {
      const Graph graph = small_graph(seed);
      if (graph.node_count() > most_nodes) continue;
      try {
        compare(graph, comparison);
      } catch (const ArgumentError&) {
        ++left_out;
      }
    }
  }
  state.counters["mean"] = comparison.sum / comparison.feasible;
  state.counters["worst"] = comparison.worst;
  state.counters["feasible"] = static_cast<double>(comparison.feasible) / comparison.budgets;
  state.counters["optimal"] = static_cast<double>(comparison.optimal) / comparison.budgets;
  state.counters["smallest"] = comparison.smallest / comparison.graphs;
  state.counters["left_out"] = left_out;
}

}  // namespace

void register_small() {
  benchmark::RegisterBenchmark(name, compare_all)->Unit(benchmark::kSecond)->Iterations(1);
}

void claim_small(const Results& results, Claims& claims) {
  const std::string subject = std::to_string(graphs) + " graphs of at most " +
                              std::to_string(most_nodes) + " nodes, " +
                              std::to_string(std::size(percents)) + " budgets each: ";
  claims.at_most(subject + "mean cost", 1.01, results.counter(name, "mean"), "of the least");
  claims.at_most(subject + "highest cost", 1.05, results.counter(name, "worst"), "of the least");
  claims.at_least(subject + "budgets kept to", 1, results.counter(name, "feasible"),
                  "of those that can be");
  claims.at_most(subject + "mean smallest budget", 1.01, results.counter(name, "smallest"),
                 "of the least");
}

}  // namespace palimpsest::benchmarks
