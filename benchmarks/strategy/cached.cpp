#include <benchmark/benchmark.h>

#include <vector>

#include "benchmarks/strategy/parts.h"
#include "benchmarks/turns.h"
#include "palimpsest.h"

namespace palimpsest::benchmarks {
namespace {

using benchmark::State;

constexpr std::int64_t width = 256;

/// A network whose last layer is trained; its other layers and the batch stay fixed.
struct Frozen {
  std::vector<Tensor> layers;
  std::vector<Tensor> parameters{Tensor::normal({width, width}, 9, 0, 0.06)};
  std::vector<Tensor> batch{Tensor::uniform({1024, width}, 20, -1, 1)};

  Frozen() {
    for (std::uint64_t k = 0; k < 6; ++k) {
      layers.push_back(Tensor::normal({width, width}, k, 0, 0.06));
    }
  }
  Var loss(Tape& tape, std::span<const Var> p, std::span<const Var> b) const {
    Var state = b[0];
    for (const Tensor& layer : layers) state = tanh(matmul(state, tape.constant(layer)));
    return mean(square(matmul(state, p[0])));
  }
};

/// Caching results from step to step, against no cache. The parameters change in every step.
void keep_results(State& state, bool batch_changes) {
  Frozen frozen;
  const ModelFunction loss = [&](Tape& tape, std::span<const Var> p, std::span<const Var> b) {
    return frozen.loss(tape, p, b);
  };
  Execution usual;
  Execution cached({.run = {.memory = AllocationPolicy::cached}});
  Report of_usual;
  Report of_cached;
  const auto step = [&](Execution& execution) {
    frozen.parameters[0].data<float>()[0] += 1e-3f;
    if (batch_changes) frozen.batch[0].data<float>()[0] += 1e-3f;
    return execution.gradients(loss, frozen.parameters, frozen.batch).report();
  };
  Turns turns;
  turns.add_once("usual", [&] { of_usual = step(usual); });
  turns.add_once("cached", [&] { of_cached = step(cached); });
  for (auto _ : state) {
    turns.take(4);
    state.SetIterationTime(turns.seconds("cached"));
  }
  const auto peak = static_cast<double>(of_cached.measured_peak);
  state.counters["of_usual_time"] = turns.ratio("cached", "usual");
  state.counters["of_usual_peak"] = peak / static_cast<double>(of_usual.measured_peak);
  state.counters["peak_bytes"] = peak;
  state.counters["cached"] = of_cached.cached;
  state.counters["within"] = of_cached.measured_peak <= of_cached.predicted_peak;
}

constexpr const char* stays = "cached/batch-stays";
constexpr const char* changes = "cached/batch-changes";

}  // namespace

void register_cached() {
  for (const auto& [name, batch_changes] : {std::pair(stays, false), {changes, true}}) {
    benchmark::RegisterBenchmark(
        name, [batch_changes](State& state) { keep_results(state, batch_changes); })
        ->Unit(benchmark::kMillisecond)
        ->Iterations(1)
        ->UseManualTime();
  }
}

void claim_cached(const Results& results, Claims& claims) {
  for (const char* const name : {stays, changes}) {
    claims.at_least(std::string(name) + ": the peak is as predicted or less", 1,
                    results.counter(name, "within"), "");
  }
  claims.at_least("what leads up to what is trained is kept", 1, results.counter(stays, "cached"),
                  "values");
  claims.at_most("a step whose frozen layers are kept", 0.5,
                 results.counter(stays, "of_usual_time"), "of the time of one without");
  claims.at_most("looking for results to keep, where all change", 1.1,
                 results.counter(changes, "of_usual_time"), "of the time of a step without");
}

}  // namespace palimpsest::benchmarks
