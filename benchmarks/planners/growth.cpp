#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "benchmarks/networks.h"
#include "benchmarks/planners/parts.h"
#include "checkpoint/chains/binomial.h"
#include "examples/support/resident.h"

namespace palimpsest::benchmarks {
namespace {

using benchmark::State;

/// A program that can be built from any number of parts.
struct Growing {
  std::string name;
  std::function<Graph(int parts)> graph;
};

/// t ← tanh(t·w), with its own w in each step.
Graph chain_of(int steps) {
  return gradient_graph([=](Tape& tape) {
    Var t = tape.constant(Tensor::zeros({128, 64}));
    for (int step = 0; step < steps; ++step) t = tanh(t * tape.parameter(Tensor::zeros({64})));
    return mean(t);
  });
}

std::vector<Growing> growing() {
  const auto transformer_of = [](int blocks) {
    return gradient_graph(transformer({.blocks = blocks, .width = 16}).record_loss);
  };
  return {{"chain", chain_of}, {"transformer", transformer_of}};
}

/// A graph of approximately `nodes` nodes.
Graph graph_of_size(const Growing& program, std::uint32_t nodes) {
  const std::uint32_t one = program.graph(1).node_count();
  const std::uint32_t more = program.graph(2).node_count() - one;
  return program.graph(static_cast<int>(1 + (nodes - one) / more));
}

struct Size {
  std::uint32_t nodes;
  double seconds;  ///< time limit; 0: none is claimed
};
constexpr Size sizes[] = {{1'000, 0.1}, {10'000, 1}, {30'000, 0}, {100'000, 15}};
constexpr int percents[] = {50, 20};

std::string benchmark_name(const Growing& program, const Size& size, int percent) {
  return "growth/" + program.name + "/" + std::to_string(size.nodes) + "/" +
         std::to_string(percent) + "%";
}

/// The first plan of `auto` for a budget of `percent` per cent of keep-all.
void first_plan(State& state, const Growing& program, const Size& size, int percent) {
  const Graph graph = graph_of_size(program, size.nodes);
  const Bytes budget = smallest_budget(graph, *keep_all()) / 100 * percent;
  const PlannerPtr planner = automatic({.moves = 0});
  // Loads the planners' code, so that the measured growth does not include it.
  smallest_budget(program.graph(2), *planner);
  examples::restart_peak_resident();
  const Bytes resident = resident_size();
  std::optional<Plan> plan;
  for (auto _ : state) plan = find_plan(graph, *planner, budget);
  const Bytes growth = examples::peak_resident() - resident;
  if (!plan) return state.SkipWithError("no plan fits");
  state.counters["nodes"] = graph.node_count();
  state.counters["bytes_per_node"] = static_cast<double>(growth) / graph.node_count();
  state.counters["cost"] = plan->simulation.cost_ratio();
  state.counters["gap"] = gap(graph, plan->simulation.cost, budget);
}

/// Plans a chain of unequal stages.
void chain_planner(State& state) {
  const Graph graph = gradient_graph([&](Tape& tape) {
    Var t = tape.constant(Tensor::zeros({1024, 32}));
    for (std::int64_t stage = 0; stage < state.range(0); ++stage) {
      const Shape shape{t.shape()[1], 32 + 8 * (stage * 7 % 11)};
      t = tanh(matmul(t, tape.parameter(Tensor::zeros(shape))));
    }
    return mean(t);
  });
  const Bytes budget = smallest_budget(graph, *keep_all()) / 4;
  const PlannerPtr planner = chain({.stages = static_cast<std::uint32_t>(state.range(0))});
  std::optional<Plan> plan;
  for (auto _ : state) plan = find_plan(graph, *planner, budget);
  if (!plan) return state.SkipWithError("no plan fits");
  state.counters["cost"] = plan->simulation.cost_ratio();
}

/// Fuses and plans a chain of steps on scalars, without a budget.
void scalar_chain(State& state) {
  for (auto _ : state) {
    Tape tape(lazy());
    const Var x = tape.parameter(Tensor::scalar(0.5));
    Var y = x;
    for (std::int64_t step = 0; step < state.range(0); ++step) y = y * 1.0001 + x;
    plan_backward(y);
  }
}

/// Generates the binomial schedule of a long chain, action by action.
void binomial_schedule(State& state) {
  const auto steps = static_cast<std::uint32_t>(state.range(0));
  constexpr std::uint32_t snapshots = 50;
  std::uint64_t forward = 0;
  for (auto _ : state) {
    BinomialSchedule schedule(steps, snapshots);
    forward = 0;
    std::uint64_t at = 0;
    while (const std::optional<ChainAction> action = schedule.next()) {
      switch (action->kind) {
        case ChainAction::Kind::store:
          break;
        case ChainAction::Kind::restore:
          at = action->step;
          break;
        case ChainAction::Kind::advance:
          forward += action->step - at;
          at = action->step;
          break;
        case ChainAction::Kind::reverse:
          ++forward;
          break;
      }
    }
  }
  state.counters["forward_over_closed_form"] =
      static_cast<double>(forward) / static_cast<double>(binomial_forward_steps(steps, snapshots));
}

/// Draws the seconds of a first plan against the number of nodes.
std::string picture(const Results& results) {
  Chart chart{"Time to the first plan", "nodes, thousands", "processor time, s", {}, {}};
  for (const Growing& program : growing()) {
    for (const int percent : percents) {
      Chart::Curve curve{program.name + ", " + std::to_string(percent) + " %", {}, false};
      for (const Size& size : sizes) {
        const std::string name = benchmark_name(program, size, percent);
        curve.points.emplace_back(results.counter(name, "nodes") / 1000, results.cpu_seconds(name));
      }
      chart.curves.push_back(std::move(curve));
    }
  }
  const Size& largest = *std::rbegin(sizes);
  chart.lines.push_back(
      {"allowed for " + std::to_string(largest.nodes) + " nodes", largest.seconds});
  const auto last = std::ranges::max(chart.curves.back().points);
  chart.curves.push_back({"in proportion to nodes", {{0, 0}, last}, false});
  return render(chart);
}

}  // namespace

void register_growth() {
  for (const Growing& program : growing()) {
    for (const Size& size : sizes) {
      for (const int percent : percents) {
        benchmark::RegisterBenchmark(
            benchmark_name(program, size, percent).c_str(),
            [=](State& state) { first_plan(state, program, size, percent); })
            ->Unit(benchmark::kMillisecond)
            ->Iterations(1);
      }
    }
  }
  benchmark::RegisterBenchmark("growth/chain_planner", chain_planner)
      ->Arg(300)
      ->Unit(benchmark::kMillisecond)
      ->Iterations(1);
  benchmark::RegisterBenchmark("growth/scalars", scalar_chain)
      ->Arg(10'000)
      ->Arg(80'000)
      ->Unit(benchmark::kMillisecond)
      ->Iterations(1);
  benchmark::RegisterBenchmark("growth/binomial", binomial_schedule)
      ->Arg(100'000)
      ->Arg(1'000'000)
      ->Unit(benchmark::kMillisecond);
}

void claim_growth(const Results& results, Claims& claims) {
  for (const Growing& program : growing()) {
    for (const Size& size : sizes) {
      for (const int percent : percents) {
        const std::string name = benchmark_name(program, size, percent);
        if (size.seconds > 0) {
          claims.at_most(name + ": processor time to the first plan", size.seconds,
                         results.cpu_seconds(name), "s");
        }
        claims.at_most(name + ": memory of planning", 2048, results.counter(name, "bytes_per_node"),
                       "bytes a node");
      }
    }
  }
  claims.at_most("growth/chain_planner/300: processor time", 2,
                 results.cpu_seconds("growth/chain_planner/300"), "s");
  claims.at_most(
      "growth/scalars/80000: processor time", 16,
      results.cpu_seconds("growth/scalars/80000") / results.cpu_seconds("growth/scalars/10000"),
      "times that of an eighth");
  const std::string thousands = "growth/binomial/100000";
  const std::string million = "growth/binomial/1000000";
  for (const std::string& name : {thousands, million}) {
    claims.at_most(name + ": forward steps", 1, results.counter(name, "forward_over_closed_form"),
                   "of the closed form");
  }
  claims.at_most(million + ": processor time", 20,
                 results.cpu_seconds(million) / results.cpu_seconds(thousands),
                 "times that of a tenth");
  if (!results.partial()) claims.draw(picture(results));
}

}  // namespace palimpsest::benchmarks
