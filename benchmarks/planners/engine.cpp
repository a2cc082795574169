#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "benchmarks/models.h"
#include "benchmarks/planners/parts.h"

namespace palimpsest::benchmarks {
namespace {

using benchmark::State;

constexpr int steps = 20;
constexpr int percents[] = {50, 30};

/// The demo's network, the character model, a recurrent network.
std::vector<Model> trained() { return {residual_network(), transformer(), rnn()}; }

std::string benchmark_name(const Model& model, int percent) {
  return "engine/" + model.name + "/" + std::to_string(percent) + "%";
}

/// Gradients of several steps of a training loop, within so many per cent of keep-all memory.
void train(State& state, const Model& model, int percent) {
  const auto evaluator = std::dynamic_pointer_cast<EngineEvaluator>(lazy());
  Tape tape(evaluator);
  const Bytes everything = plan_backward(model.record_loss(tape)).keep_all_peak;
  const RunOptions options{.memory_budget = everything / 100 * percent};
  double planning = 0;
  double running = 0;
  Bytes difference = 0;
  for (auto _ : state) {
    for (int step = 0; step < steps; ++step) {
      tape.clear();
      const Gradients gradients = backward(model.record_loss(tape), options);
      const Report& report = gradients.report();
      planning += report.planning_seconds;
      running += report.run_seconds;
      difference =
          std::max(difference, std::abs(report.predicted_peak - laid_out(report.measured_peak)));
      state.counters["overhead"] = report.compute_overhead;
      state.counters["improvements"] = report.plan_improvements;
    }
  }
  state.counters["unpredicted"] = static_cast<double>(difference);
  state.counters["plans_made"] = static_cast<double>(evaluator->engine().plans_made());
  state.counters["planning_s"] = planning;
  state.counters["planning_share"] = planning / running;
}

}  // namespace

void register_engine() {
  for (const Model& model : trained()) {
    for (const int percent : percents) {
      benchmark::RegisterBenchmark(benchmark_name(model, percent).c_str(),
                                   [=](State& state) { train(state, model, percent); })
          ->Unit(benchmark::kMillisecond)
          ->Iterations(1)
          ->UseRealTime();
    }
  }
}

void claim_engine(const Results& results, Claims& claims) {
  for (const Model& model : trained()) {
    for (const int percent : percents) {
      const std::string name = benchmark_name(model, percent);
      claims.at_most(name +
                         ": measured peak, in the layout's units of 64 bytes, differs from the "
                         "predicted by what",
                     0, results.counter(name, "unpredicted"), "bytes");
      claims.at_most(name + ": plans made for " + std::to_string(steps) + " steps", 1,
                     results.counter(name, "plans_made"), "");
      claims.at_most(name + ": planning for " + std::to_string(steps) + " steps", 0.1,
                     results.counter(name, "planning_share"), "of their time");
    }
  }
}

}  // namespace palimpsest::benchmarks
