#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "benchmarks/strategy/parts.h"
#include "benchmarks/turns.h"
#include "palimpsest.h"

namespace palimpsest::benchmarks {
namespace {

using benchmark::State;

constexpr std::int64_t width = 256;

/// A workload of layers, for ways of running a batch in parts.
Workload layers() {
  Workload workload{.batch = {Tensor::uniform({2048, width}, 20, -1, 1)}};
  for (std::uint64_t k = 0; k < 8; ++k) {
    workload.parameters.push_back(Tensor::normal({width, width}, k, 0, 0.06));
  }
  workload.model = [](Tape&, std::span<const Var> weights, std::span<const Var> batch) {
    Var state = batch[0];
    for (const Var& weight : weights) state = tanh(matmul(state, weight)) + state;
    return mean(square(state));
  };
  return workload;
}

Report step(Execution& execution, const Workload& workload) {
  return execution.gradients(workload.model, workload.parameters, workload.batch).report();
}

struct Row {
  const char* name;
  ExecutionStrategy strategy;
};

std::vector<Row> rows() {
  return {{"high-throughput", strategy_named("high-throughput")},
          {"micro-batches", {.accumulation = 4}},
          {"pipeline",
           {.accumulation = 8,
            .parallelism = ParallelMode::pipeline,
            .stages = 2,
            .run = {.threads = 2}}},
          {"devices", {.parallelism = ParallelMode::model_parallel, .devices = {{}, {}}}}};
}

/// Time and memory of a strategy, and their estimates from machine rates alone.
void in_parts(State& state, const Row& row) {
  const Workload workload = layers();
  Execution usual;
  Execution other(row.strategy);
  Report of_usual;
  Report of_other;
  Turns turns;
  turns.add_once("usual", [&] { of_usual = step(usual, workload); });
  turns.add_once("other", [&] { of_other = step(other, workload); });
  for (auto _ : state) {
    turns.take(4);
    state.SetIterationTime(turns.seconds("other"));
  }
  const Estimate estimated = estimate(row.strategy, workload);
  const auto peak = static_cast<double>(of_other.measured_peak);
  state.counters["of_default_time"] = turns.ratio("other", "usual");
  state.counters["of_default_peak"] = peak / static_cast<double>(of_usual.measured_peak);
  state.counters["peak_bytes"] = peak;
  state.counters["within"] = of_other.measured_peak <= of_other.predicted_peak;
  state.counters["estimated_peak"] =
      static_cast<double>(estimated.peak) / static_cast<double>(of_other.predicted_peak);
  state.counters["estimated_time"] = estimated.seconds / turns.seconds("other");
}

/// The strategy recommended for `memory` bytes, against all candidates that fit.
void recommended(State& state, Bytes memory) {
  const Workload workload = layers();
  const Recommendation found = recommend(workload, {.memory = memory, .threads = 2});
  std::vector<Execution> executions;
  executions.reserve(found.considered.size());
  for (const Considered& each : found.considered) {
    if (each.estimate) executions.emplace_back(each.strategy);
  }
  std::vector<Report> reports(executions.size());
  Turns turns;
  for (std::size_t i = 0; i < executions.size(); ++i) {
    turns.add_once(std::to_string(i), [&, i] { reports[i] = step(executions[i], workload); });
  }
  for (auto _ : state) {
    turns.take(12);
    state.SetIterationTime(turns.seconds("0"));
  }
  double fastest = std::numeric_limits<double>::infinity();
  bool within = true;
  for (std::size_t i = 0; i < executions.size(); ++i) {
    fastest = std::min(fastest, turns.seconds(std::to_string(i)));
    within = within && reports[i].measured_peak <= memory;
  }
  std::size_t chosen = 0;
  while (found.considered[chosen].strategy != found.strategy) ++chosen;
  const double seconds = turns.seconds(std::to_string(chosen));
  state.counters["of_fastest"] = seconds / fastest;
  state.counters["estimated_time"] = found.estimate.seconds / seconds;
  state.counters["considered"] = static_cast<double>(executions.size());
  state.counters["within"] = within;
}

const std::map<std::string, Bytes> memories{{"choice/recommended-8-MiB", 8_MiB},
                                            {"choice/recommended-12-MiB", 12_MiB},
                                            {"choice/recommended-64-MiB", 64_MiB}};

template <class F>
void add(const std::string& name, F run) {
  benchmark::RegisterBenchmark(name.c_str(), run)
      ->Unit(benchmark::kMillisecond)
      ->Iterations(1)
      ->UseManualTime();
}

}  // namespace

void register_choice() {
  for (const Row& row : rows()) {
    add("choice/" + std::string(row.name), [row](State& state) { in_parts(state, row); });
  }
  for (const auto& [name, memory] : memories) {
    add(name, [bytes = memory](State& state) { recommended(state, bytes); });
  }
}

void claim_choice(const Results& results, Claims& claims) {
  for (const Row& row : rows()) {
    const std::string name = "choice/" + std::string(row.name);
    claims.at_least(name + ": the peak is as predicted or less", 1, results.counter(name, "within"),
                    "");
    claims.at_most(name + ": the estimated peak is off by", 0,
                   std::abs(results.counter(name, "estimated_peak") - 1), "of the predicted one");
    claims.at_most(name + ": the estimated time is off by", 0.25,
                   std::abs(results.counter(name, "estimated_time") - 1), "of the measured one");
  }
  for (const auto& [name, memory] : memories) {
    claims.at_least(name + ": all that was considered keeps to it", 1,
                    results.counter(name, "within"), "");
    // Allows for estimates that are off by up to a quarter.
    claims.at_most(name + ": a step", 1.25, results.counter(name, "of_fastest"),
                   "of the time of the fastest that was considered");
  }
}

}  // namespace palimpsest::benchmarks
