#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <vector>

#include "benchmarks/networks.h"
#include "benchmarks/planners/parts.h"

namespace palimpsest::benchmarks {
namespace {

using benchmark::State;

constexpr double unknown = infeasible;

/// Published results of other methods on one graph within one budget of live bytes. Costs are
/// relative to one pass and rounded to four decimals.
struct Row {
  std::string name;
  std::string graph;
  Bytes budget;
  double milp;   ///< Checkmate's MILP (Jain et al., 2020), 24 hours of Gurobi
  double dtr;    ///< best of four heuristics (Kirisame et al., 2021), in their authors' simulator
  double rough;  ///< interval search in a hundred lines, 15 s

  double best() const { return std::min({milp, dtr, rough}); }
};

std::vector<Row> rows() {
  std::vector<Row> rows;
  // Graphs of the schedule collection of MONeT (Shah et al., 2021).
  const auto collected = [&](const std::string& graph, Bytes budget, double milp, double dtr,
                             double rough) {
    const std::string name = graph + "/" + std::to_string(budget >> 20) + "MiB";
    rows.push_back({name, graph, budget, milp, dtr, rough});
  };
  collected("vgg16_p100", 9'524'586'496, 1.0203, 1.0203, unknown);
  collected("vgg16_p100", 8'450'844'672, 1.0235, 1.0248, unknown);
  collected("vgg16_p100", 7'377'102'848, 1.0416, 1.0754, 1.0416);
  collected("unet_p100", 10'565'857'280, 1.0242, 1.0332, 1.0241);
  collected("unet_p100", 9'492'115'456, 1.0289, 1.0424, unknown);
  collected("unet_p100", 8'418'373'632, 1.0348, 1.0511, unknown);
  collected("unet_p100", 7'344'631'808, 1.0442, 1.0607, 1.0442);
  collected("unet_p100", 6'270'889'984, 1.0603, 1.1063, unknown);
  collected("unet_p100", 5'197'148'160, 1.1116, infeasible, 1.1116);
  // DTR's own traces. A budget is a share of the memory that its simulator takes, including
  // resident bytes.
  struct Traced {
    double share, dtr, rough;
  };
  const auto traced = [&](const std::string& graph, Bytes whole, Bytes resident,
                          std::initializer_list<Traced> levels) {
    for (const auto& [share, dtr, rough] : levels) {
      const auto budget = static_cast<Bytes>(std::floor(share * static_cast<double>(whole)));
      const std::string name = graph + "/" + std::to_string(std::lround(100 * share)) + "%";
      rows.push_back({name, graph, budget - resident, unknown, dtr, rough});
    }
  };
  traced("resnet32", 10'061'179'648, 35'584'920,
         {{0.9, 1.0131, 1.0122},
          {0.8, 1.0248, unknown},
          {0.7, 1.0463, unknown},
          {0.6, 1.0737, unknown},
          {0.5, 1.1068, 1.0907},
          {0.4, 1.1404, unknown},
          {0.3, 1.1783, 1.1686},
          {0.2, 1.3322, 1.2182},
          {0.15, 1.4325, unknown},
          {0.1, infeasible, 1.6843}});
  traced("unet", 8'415'764'928, 93'386'276,
         {{0.9, 1.0331, 1.0110},
          {0.8, 1.0577, unknown},
          {0.7, 1.0846, unknown},
          {0.6, 1.1308, unknown},
          {0.5, 1.1588, 1.0958},
          {0.4, infeasible, 1.1406},
          {0.3, infeasible, 1.2844}});
  traced("lstm", 5'595'127'736, 194'424'928,
         {{0.9, 1.0175, unknown},
          {0.8, 1.0269, unknown},
          {0.7, 1.0316, unknown},
          {0.6, 1.0419, unknown},
          {0.5, 1.0654, unknown},
          {0.4, 1.1441, unknown},
          {0.3, 1.3019, unknown},
          {0.2, 1.5526, unknown},
          {0.15, infeasible, unknown}});
  return rows;
}

/// The rows whose graphs are available, with the networks to plan.
std::vector<std::pair<Row, Network>> rows_at_hand() {
  std::vector<std::pair<Row, Network>> result;
  const std::vector<Network> networks = published_networks();
  for (Row& row : rows()) {
    const auto network =
        std::find_if(networks.begin(), networks.end(),
                     [&](const Network& candidate) { return candidate.name == row.graph; });
    if (network != networks.end()) result.emplace_back(std::move(row), *network);
  }
  return result;
}

/// The longer of the two planning times of a row.
double patience() {
  const char* const text = std::getenv("PALIMPSEST_SECONDS");
  return text != nullptr ? std::strtod(text, nullptr) : 10;
}

struct Way {
  const char* name;
  double seconds;
  bool lay_out;
};

std::vector<Way> ways() {
  return {{"quick", 1, false}, {"long", patience(), false}, {"laid_out", 1, true}};
}

std::string benchmark_name(const Row& row, const Way& way) {
  return "published/" + row.name + "/" + way.name;
}

double processor_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Calls f(limit) with a limit of wall time that gives this thread about `seconds` of processor
/// time. The limit equals `seconds` unless the machine is busy with other work. Returns the
/// processor time of the last call.
template <class F>
double within(double seconds, F f) {
  double limit = seconds;
  double spent = 0;
  for (int attempt = 0; attempt < 4; ++attempt) {
    const auto start = std::chrono::steady_clock::now();
    const double before = processor_seconds();
    f(limit);
    spent = processor_seconds() - before;
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    const bool disturbed = spent < 0.9 * wall.count();
    if (spent < 1.05 * seconds && !(disturbed && spent < 0.9 * seconds)) break;
    limit = std::min(limit * 0.97 * seconds / spent, 5 * seconds);
  }
  return spent;
}

void plan(State& state, const Row& row, const Network& network, const Way& way) {
  const Graph graph = network.graph();
  double cost = infeasible;
  double layout = way.lay_out ? infeasible : nothing;
  const auto try_for = [&](double seconds) {
    const PlannerPtr planner = automatic({.seconds = seconds, .lay_out = way.lay_out});
    if (!way.lay_out) {
      cost = cheapest(graph, *planner, row.budget);
    } else if (const auto plan = find_plan(graph, *planner, row.budget)) {
      cost = plan->simulation.cost;
      layout = static_cast<double>(plan->layout.size) / static_cast<double>(plan->simulation.peak);
    }
  };
  for (auto _ : state) state.counters["processor_s"] = within(way.seconds, try_for);
  state.counters["cost"] = cost / graph.one_pass_cost();
  state.counters["gap"] = gap(graph, cost, row.budget);
  state.counters["layout"] = layout;
}

double rounded(double cost) { return std::round(1e4 * cost) / 1e4; }

/// The cost that is one unit lower in the fourth decimal.
double just_below(double cost) { return cost - 1e-4; }

}  // namespace

void register_published() {
  const auto rows = rows_at_hand();
  if (rows.empty()) {
    std::cerr << "PALIMPSEST_GRAPHS names no folder of published graphs: nothing is compared with "
                 "published costs.\n";
  }
  for (const auto& [row, network] : rows) {
    for (const Way& way : ways()) {
      benchmark::RegisterBenchmark(
          benchmark_name(row, way).c_str(),
          [row = row, network = network, way](State& state) { plan(state, row, network, way); })
          ->Unit(benchmark::kSecond)
          ->Iterations(1);
    }
  }
}

void claim_published(const Results& results, Claims& claims) {
  const auto seconds = [](double amount) {
    char text[16];
    std::snprintf(text, sizeof text, "%g s", amount);
    return std::string(text);
  };
  const Way quick = ways()[0];
  const Way patient = ways()[1];
  const Way laid_out = ways()[2];
  std::map<std::string, double> layouts;
  for (const auto& [row, network] : rows_at_hand()) {
    const auto claim = [&](const Way& way, const std::string& than, double target) {
      if (target == infeasible) return;
      claims.at_most(row.name + ": cost after " + seconds(way.seconds) + ", against " + than,
                     target, rounded(results.counter(benchmark_name(row, way), "cost")), "passes");
    };
    claim(quick, "the best known and 1 %", 1.01 * row.best());
    claim(laid_out, "the same, layout in the budget", 1.01 * row.best());
    claim(patient, "a MILP's and 0.05 %", 1.0005 * row.milp);
    // If the MILP has proven DTR's cost optimal, no plan can be cheaper.
    claim(patient, "DTR's", row.dtr == row.milp ? row.dtr : just_below(row.dtr));
    claim(patient, "a rough search's", row.rough);
    const double cost = results.counter(benchmark_name(row, quick), "cost");
    if (row.dtr == infeasible && !std::isnan(cost)) {
      claims.at_least(row.name + ": feasible after " + seconds(quick.seconds) + ", where DTR fails",
                      1, cost < infeasible, "");
    }
    for (const Way& way : {quick, patient, laid_out}) {
      claims.at_most(benchmark_name(row, way) + ": processor time", 1.1 * way.seconds,
                     results.counter(benchmark_name(row, way), "processor_s"), "s");
    }
    double& layout = layouts[row.graph];
    const double own = results.counter(benchmark_name(row, laid_out), "layout");
    if (std::isnan(own) || own > layout) layout = own;  // also keeps NaN
  }
  for (const auto& [graph, layout] : layouts) {
    claims.at_most(graph + ": layout at any of these budgets", 1.02, layout, "of live bytes");
  }
}

}  // namespace palimpsest::benchmarks
