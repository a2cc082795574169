#include <benchmark/benchmark.h>

#include <cmath>
#include <vector>

#include "benchmarks/strategy/parts.h"
#include "benchmarks/turns.h"
#include "palimpsest.h"

namespace palimpsest::benchmarks {
namespace {

using benchmark::State;

constexpr std::int64_t width = 256;
constexpr int layers = 8;

Var loss_of(Tape&, std::span<const Var> weights, std::span<const Var> batch) {
  Var state = batch[0];
  for (const Var& weight : weights) state = tanh(matmul(state, weight)) + state;
  return mean(square(state));
}

struct Row {
  int micro_batches;
  double most_peak;  ///< as a ratio to the whole batch
  double most_time;

  std::string name() const { return "accumulation/" + std::to_string(micro_batches); }
};

constexpr Row rows[] = {{2, 0.6, 1.1}, {4, 0.35, 1.1}, {8, 0.22, 1.15}};

void in_micro_batches(State& state, const Row& row) {
  Workload workload{.model = loss_of, .batch = {Tensor::uniform({2048, width}, 20, -1, 1)}};
  for (std::uint64_t k = 0; k < layers; ++k) {
    workload.parameters.push_back(Tensor::normal({width, width}, k, 0, 0.06));
  }
  const ExecutionStrategy whole{.gradient = GradientMode::full, .parallelism = ParallelMode::none};
  ExecutionStrategy parts = whole;
  parts.accumulation = row.micro_batches;
  Execution at_once(whole);
  Execution in_turn(parts);
  Report of_whole;
  Report of_parts;
  const auto step = [&](Execution& execution) {
    return execution.gradients(workload.model, workload.parameters, workload.batch).report();
  };
  Turns turns;
  turns.add_once("whole", [&] { of_whole = step(at_once); });
  turns.add_once("parts", [&] { of_parts = step(in_turn); });
  for (auto _ : state) {
    turns.take(4);
    state.SetIterationTime(turns.seconds("parts"));
  }
  const auto peak = static_cast<double>(of_parts.measured_peak);
  state.counters["of_whole_time"] = turns.ratio("parts", "whole");
  state.counters["of_whole_peak"] = peak / static_cast<double>(of_whole.measured_peak);
  state.counters["peak_bytes"] = peak;
  state.counters["within"] = of_parts.measured_peak <= of_parts.predicted_peak;
  state.counters["estimated_peak"] = static_cast<double>(estimate(parts, workload).peak) /
                                     static_cast<double>(of_parts.predicted_peak);
}

}  // namespace

void register_accumulation() {
  for (const Row& row : rows) {
    benchmark::RegisterBenchmark(row.name().c_str(),
                                 [&row](State& state) { in_micro_batches(state, row); })
        ->Unit(benchmark::kMillisecond)
        ->Iterations(1)
        ->UseManualTime();
  }
}

void claim_accumulation(const Results& results, Claims& claims) {
  for (const Row& row : rows) {
    const std::string name = row.name();
    claims.at_least(name + " micro-batches: the peak is as predicted or less", 1,
                    results.counter(name, "within"), "");
    claims.at_most(name + " micro-batches: the estimated peak is off by", 0,
                   std::abs(results.counter(name, "estimated_peak") - 1), "of the predicted one");
    claims.at_most(name + " micro-batches: peak", row.most_peak,
                   results.counter(name, "of_whole_peak"), "of that of the whole batch");
    claims.at_most(name + " micro-batches: a step", row.most_time,
                   results.counter(name, "of_whole_time"), "of the time of the whole batch");
  }
}

}  // namespace palimpsest::benchmarks
