#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "benchmarks/strategy/parts.h"
#include "benchmarks/turns.h"
#include "palimpsest.h"

namespace palimpsest::benchmarks {
namespace {

using benchmark::State;

/// Two independent branches of layers whose outputs are compared.
Workload branches(std::int64_t width, std::int64_t examples) {
  constexpr std::size_t layers = 4;
  Workload workload;
  for (std::size_t k = 0; k < 2 * layers; ++k) {
    const double deviation = 1 / std::sqrt(static_cast<double>(width));
    workload.parameters.push_back(Tensor::normal({width, width}, k, 0, deviation));
  }
  workload.batch = {Tensor::uniform({examples, width}, 20, -1, 1),
                    Tensor::uniform({examples, width}, 21, -1, 1)};
  workload.model = [](Tape& tape, std::span<const Var> p, std::span<const Var> batch) {
    std::vector<Var> ends;
    for (const std::size_t branch : {0, 1}) {
      const auto scope = tape.scope(branch == 0 ? "left" : "right");
      Var y = batch[branch];
      for (std::size_t k = 0; k < layers; ++k) y = gelu(matmul(y, p[branch * layers + k]));
      ends.push_back(y);
    }
    const Var error = ends[0] - ends[1];
    return mean(error * error);
  };
  return workload;
}

/// Two devices with one thread each, against automatic parallelism on two threads.
void on_devices(State& state, std::int64_t width, std::int64_t examples) {
  const Workload workload = branches(width, examples);
  const ExecutionStrategy strategy{.parallelism = ParallelMode::model_parallel,
                                   .devices = {{.scopes = {"left"}}, {.scopes = {"right"}}},
                                   .run = {.threads = 2}};
  Execution automatic({.run = {.threads = 2}});
  Execution devices(strategy);
  Report of_automatic;
  Report of_devices;
  const auto step = [&](Execution& execution) {
    return execution.gradients(workload.model, workload.parameters, workload.batch).report();
  };
  Turns turns;
  turns.add_once("automatic", [&] { of_automatic = step(automatic); });
  turns.add_once("devices", [&] { of_devices = step(devices); });
  for (auto _ : state) {
    turns.take(4);
    state.SetIterationTime(turns.seconds("devices"));
  }
  const auto peak = static_cast<double>(of_devices.measured_peak);
  Bytes fullest = 0;
  for (const Report::Device& device : of_devices.devices) {
    fullest = std::max(fullest, device.measured_peak);
  }
  state.counters["of_automatic"] = turns.ratio("devices", "automatic");
  state.counters["of_automatic_peak"] = peak / static_cast<double>(of_automatic.measured_peak);
  state.counters["fullest"] = static_cast<double>(fullest) / peak;
  state.counters["peak_bytes"] = peak;
  state.counters["within"] = of_devices.measured_peak <= of_devices.predicted_peak;
  state.counters["estimated_peak"] = static_cast<double>(estimate(strategy, workload).peak) /
                                     static_cast<double>(of_devices.predicted_peak);
}

struct Row {
  const char* name;
  std::int64_t width;
  std::int64_t examples;
};
constexpr Row rows[] = {{"devices/large", 512, 1024}, {"devices/small", 64, 512}};

}  // namespace

void register_devices() {
  for (const Row& row : rows) {
    benchmark::RegisterBenchmark(
        row.name, [&row](State& state) { on_devices(state, row.width, row.examples); })
        ->Unit(benchmark::kMillisecond)
        ->Iterations(1)
        ->UseManualTime();
  }
}

void claim_devices(const Results& results, Claims& claims) {
  for (const Row& row : rows) {
    const std::string name = row.name;
    claims.at_least(name + ": the peak is as predicted or less", 1, results.counter(name, "within"),
                    "");
    claims.at_most(name + ": the estimated peak is off by", 0,
                   std::abs(results.counter(name, "estimated_peak") - 1), "of the predicted one");
    claims.at_most(name + ": the fullest of two has", 0.65, results.counter(name, "fullest"),
                   "of the peak of both");
    claims.at_most(name + ": a step", 1.1, results.counter(name, "of_automatic"),
                   "of the time of automatic parallelism");
  }
}

}  // namespace palimpsest::benchmarks
