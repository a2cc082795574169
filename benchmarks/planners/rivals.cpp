#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "benchmarks/networks.h"
#include "benchmarks/planners/parts.h"
#include "checkpoint/engine_planner.h"

namespace palimpsest::benchmarks {
namespace {

using benchmark::State;

constexpr int levels[] = {0, 10, 25, 50, 75, 100};

/// A planner to compare with `auto`, or several planners of one kind, of which the best one counts.
struct Rival {
  std::string name;
  std::vector<PlannerPtr> planners;
  bool limits_auto = false;  ///< each one is `auto` with a limit of its own
};

std::vector<Rival> rivals() {
  std::vector<PlannerPtr> uniforms;
  for (std::uint32_t segments = 2; segments <= 512; segments = segments * 3 / 2 + segments % 2) {
    uniforms.push_back(uniform({.segments = segments}));
  }
  return {{"square_root", {square_root()}},
          {"min_cut", {min_cut()}},
          {"uniform", uniforms},
          {"fraction", {fraction(0.3), fraction(0.6)}, true},
          {"greedy", {greedy()}},
          {"chain", {chain()}},
          {"online", {online()}}};
}

/// The planner under test: `auto` with a hundred moves, on a machine that makes them in three
/// seconds.
PlannerPtr in_time() { return automatic({.moves = 100, .seconds = 3}); }
PlannerPtr at_once() { return automatic({.moves = 0}); }

struct Point {
  Bytes peak;  ///< of the arena
  double cost;
};

/// One network, with cached results that do not depend on the budget.
class Contest {
 public:
  explicit Contest(Network network) : network_(std::move(network)) {}

  const std::string& name() const { return network_.name; }
  const Graph& graph() {
    if (!graph_) graph_ = network_.graph();
    return *graph_;
  }
  /// The smallest budget that `planner` can meet.
  Bytes smallest(const Planner& planner) {
    const auto [entry, fresh] = smallest_.try_emplace(planner.key());
    if (fresh) entry->second = smallest_budget(graph(), planner);
    return entry->second;
  }
  /// The budget at `level` per cent of the way from the smallest budget of `auto` to keep-all.
  Bytes budget(int level) {
    const Bytes first = smallest(*in_time());
    return first + (keep_all_peak() - first) * level / 100;
  }
  Bytes keep_all_peak() { return smallest(*keep_all()); }
  double share(Bytes bytes) {
    return static_cast<double>(bytes) / static_cast<double>(keep_all_peak());
  }
  Bytes limit(const Planner& planner, Bytes budget) {
    return std::min(budget, engine_part(planner).limit(keep_all_peak(), budget));
  }
  /// The plan of `planner` for a budget.
  std::optional<Point> point(const Planner& planner, Bytes budget) {
    const Bytes limit = this->limit(planner, budget);
    const auto [entry, fresh] = points_.try_emplace({planner.key(), limit});
    if (fresh) {
      if (const auto plan = find_plan(graph(), planner, limit)) {
        entry->second = {plan->predicted_peak(), plan->simulation.cost};
      }
    }
    return entry->second;
  }

 private:
  Network network_;
  std::optional<Graph> graph_;
  std::map<std::string, Bytes> smallest_;
  std::map<std::pair<std::string, Bytes>, std::optional<Point>> points_;
};

std::optional<Point> best_of(Contest& contest, const Rival& rival, Bytes budget) {
  std::optional<Point> best;
  for (const PlannerPtr& planner : rival.planners) {
    if (rival.limits_auto && contest.limit(*planner, budget) == budget) continue;
    const auto point = contest.point(*planner, budget);
    if (point && (!best || point->cost < best->cost)) best = point;
  }
  return best;
}

/// Rounds, so that costs count as equal when they differ only by rounding errors of sums.
double quotient(double a, double b) { return std::round(1e9 * a / b) / 1e9; }

/// The cost of `theirs` over the cost of `auto` at the same peak, or a lower bound of it that is at
/// least 1. More moves never make a plan worse, so the first plan of `auto` suffices if it is not
/// more expensive.
double share_of_auto(Contest& contest, const std::optional<Point>& theirs) {
  if (!theirs) return nothing;
  const auto against = [&](const Planner& planner) {
    const auto ours = contest.point(planner, theirs->peak);
    return ours ? quotient(theirs->cost, ours->cost) : 0;
  };
  const double first = against(*at_once());
  return first >= 1 ? first : against(*in_time());
}

/// Counts the cost of `auto` at one budget. For each rival, counts its cost within that budget over
/// the cost of `auto` at the rival's peak.
void compare(State& state, Contest& contest, int level) {
  const Graph& graph = contest.graph();
  const PlannerPtr planner = in_time();
  const Bytes budget = contest.budget(level);
  std::optional<Plan> plan;
  for (auto _ : state) plan = find_plan(graph, *planner, budget);
  if (!plan) return state.SkipWithError("no plan fits a budget that was called feasible");
  state.counters["MiB"] = std::round(static_cast<double>(budget) / (1 << 20));
  state.counters["cost"] = plan->simulation.cost_ratio();
  state.counters["gap"] = gap(graph, plan->simulation.cost, budget);
  for (const Rival& rival : rivals()) {
    state.counters[rival.name] = share_of_auto(contest, best_of(contest, rival, budget));
  }
}

/// The smallest budget of each rival over that of `auto`.
void compare_smallest(State& state, Contest& contest) {
  Bytes ours = 0;
  for (auto _ : state) ours = smallest_budget(contest.graph(), *in_time());
  state.counters["MiB"] = std::round(static_cast<double>(ours) / (1 << 20));
  state.counters["share"] = contest.share(ours);
  for (const Rival& rival : rivals()) {
    Bytes theirs = unlimited;
    for (const PlannerPtr& planner : rival.planners) {
      theirs = std::min(theirs, contest.smallest(*planner));
    }
    state.counters[rival.name] = static_cast<double>(theirs) / static_cast<double>(ours);
  }
}

std::vector<Network> all_networks() {
  std::vector<Network> result = networks();
  for (Network& network : published_networks()) {
    network.name = "published_" + network.name;
    result.push_back(std::move(network));
  }
  return result;
}

std::string benchmark_name(const Network& network, const std::string& level) {
  return "rivals/" + network.name + "/" + level;
}

}  // namespace

void register_rivals() {
  for (const Network& network : all_networks()) {
    const auto contest = std::make_shared<Contest>(network);
    const auto add = [&](const std::string& level, auto function) {
      benchmark::RegisterBenchmark(benchmark_name(network, level).c_str(), function)
          ->Unit(benchmark::kMillisecond)
          ->Iterations(1);
    };
    add("smallest", [contest](State& state) { compare_smallest(state, *contest); });
    for (const int level : levels) {
      add(std::to_string(level),
          [contest, level](State& state) { compare(state, *contest, level); });
    }
  }
}

void claim_rivals(const Results& results, Claims& claims) {
  for (const Network& network : all_networks()) {
    const std::string smallest = benchmark_name(network, "smallest");
    for (const Rival& rival : rivals()) {
      std::vector<double> costs;
      for (const int level : levels) {
        const std::string name = benchmark_name(network, std::to_string(level));
        costs.push_back(results.counter(name, rival.name));
      }
      // Skips budgets that the rival cannot meet, and rivals that meet none.
      if (const double least = least_of(costs); !std::isnan(least)) {
        claims.at_least(network.name + ": cost of " + rival.name + " at the same peak", 1, least,
                        "of auto's");
      }
      claims.at_least(network.name + ": smallest budget of " + rival.name, 1,
                      results.counter(smallest, rival.name), "of auto's");
    }
  }
}

}  // namespace palimpsest::benchmarks
