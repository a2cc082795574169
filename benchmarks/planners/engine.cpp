#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>

#include "benchmarks/models.h"
#include "benchmarks/planners/parts.h"
#include "strategy/evaluators/engine.h"

namespace palimpsest::benchmarks {
namespace {

using benchmark::State;

constexpr int steps = 40;

/// A training loop of `steps` steps.
struct Loop {
  std::string name;
  int percent;  ///< the budget, in per cent of keep-all memory
  int graphs;   ///< number of different graphs among the steps
  std::function<Model(int step)> model;

  /// Limit of planning time over running time. With kernels of microseconds and a new graph in each
  /// step, even a hurried plan takes about as long as its step.
  double planning() const { return graphs < steps ? 0.1 : 1.5; }
};

std::vector<Loop> loops() {
  std::vector<Loop> result;
  for (const int percent : {50, 30}) {
    const auto add = [&](const std::string& name, int graphs, auto model) {
      result.push_back({"engine/" + name + "/" + std::to_string(percent) + "%", percent, graphs,
                        std::move(model)});
    };
    // The network of example 02, the character model, and a recurrent network.
    for (const Model& model : {residual_network(), transformer(), rnn()}) {
      add(model.name, 1, [=](int) { return model; });
    }
    add("transformers", 5, [](int step) { return transformer({.blocks = 3 + step % 5}); });
    add("rnns", steps, [](int step) { return rnn({.steps = 200 - step}); });
  }
  return result;
}

/// The gradients of each step.
void train(State& state, const Loop& loop) {
  const auto evaluator = lazy();
  Tape tape(evaluator);
  double planning = 0;
  double running = 0;
  Bytes difference = 0;
  const auto run = [&](const Model& model) {
    tape.clear();
    const Var loss = model.record_loss(tape);
    const Bytes everything = plan_backward(loss, {.planner = keep_all()}).keep_all_peak;
    const Report report =
        backward(loss, {.memory_budget = everything / 100 * loop.percent}).report();
    planning += report.planning_seconds;
    running += report.run_seconds;
    difference =
        std::max(difference, std::abs(report.predicted_peak - laid_out(report.measured_peak)));
    state.counters["overhead"] = report.compute_overhead;
    state.counters["improvements"] = report.plan_improvements;
  };
  for (auto _ : state) {
    for (int step = 0; step < steps; ++step) run(loop.model(step));
  }
  state.counters["unpredicted"] = static_cast<double>(difference);
  state.counters["plans_made"] = static_cast<double>(evaluator->engine().plans_made());
  state.counters["planning_s"] = planning;
  state.counters["planning_share"] = planning / running;
}

}  // namespace

void register_engine() {
  for (const Loop& loop : loops()) {
    benchmark::RegisterBenchmark(loop.name.c_str(), [=](State& state) { train(state, loop); })
        ->Unit(benchmark::kMillisecond)
        ->Iterations(1);
  }
}

void claim_engine(const Results& results, Claims& claims) {
  const std::string length = std::to_string(steps) + " steps";
  for (const Loop& loop : loops()) {
    claims.at_most(loop.name + ": predicted peak off the measured, in units of 64 bytes,", 0,
                   results.counter(loop.name, "unpredicted"), "bytes");
    claims.at_most(loop.name + ": plans made for " + length, loop.graphs,
                   results.counter(loop.name, "plans_made"), "");
    claims.at_most(loop.name + ": planning for " + length, loop.planning(),
                   results.counter(loop.name, "planning_share"), "of their time");
  }
}

}  // namespace palimpsest::benchmarks
