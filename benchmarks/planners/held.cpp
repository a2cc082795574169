#include <benchmark/benchmark.h>

#include <vector>

#include "benchmarks/planners/parts.h"

namespace palimpsest::benchmarks {
namespace {

using benchmark::State;

constexpr const char* linear = "held/linear";
constexpr const char* mixed = "held/mixed";

/// A loop whose derivative reads no state.
void run_linear(State& state) {
  constexpr std::int64_t steps = 100'000;
  for (auto _ : state) {
    Tape tape;
    const Var u = tape.parameter(Tensor::normal({64}, 1, 0, 1, DType::f64));
    const Var end = scan(u, steps, [](const Var& x, const StepNumber&) {
      return 0.99 * x + 0.001 * (roll(x, 1, 0) - x);
    });
    const Report report = backward(sum(end * end)).report();
    state.counters["states"] = report.loops.at(0).states;
    state.counters["runs"] = static_cast<double>(report.loops.at(0).forward_steps) / steps;
    state.counters["bytes"] = static_cast<double>(report.measured_peak);
  }
}

/// Forward steps of a loop of so many components in 4 MiB. The derivative reads the first two, and
/// the others follow them.
double steps_of(std::size_t components) {
  constexpr std::int64_t steps = 10'000;
  Tape tape;
  std::vector<Var> start;
  for (std::size_t i = 0; i < components; ++i) {
    start.push_back(tape.parameter(Tensor::normal({500}, i, 0, 0.5, DType::f64)));
  }
  const std::vector<Var> end = scan(start, steps, [](std::span<const Var> x, const StepNumber&) {
    std::vector<Var> next{sin(x[0]) + 0.1 * x[1], cos(x[1]) * 0.9};
    for (std::size_t i = next.size(); i < x.size(); ++i) next.push_back(0.9 * x[i] + x[i - 1]);
    return next;
  });
  Var loss = sum(end[0]);
  for (const Var& each : end) loss = loss + sum(each * each);
  const Report report = backward(loss, {.memory_budget = 4_MiB}).report();
  return static_cast<double>(report.loops.at(0).forward_steps);
}

void run_mixed(State& state) {
  for (auto _ : state) state.counters["share"] = steps_of(8) / steps_of(2);
}

}  // namespace

void register_held() {
  benchmark::RegisterBenchmark(linear, run_linear)->Unit(benchmark::kMillisecond)->Iterations(1);
  benchmark::RegisterBenchmark(mixed, run_mixed)->Unit(benchmark::kMillisecond)->Iterations(1);
}

void claim_held(const Results& results, Claims& claims) {
  claims.at_most("linear loop of 100000 steps: states held", 0, results.counter(linear, "states"),
                 "");
  claims.at_most("linear loop of 100000 steps: times that each step runs forward", 1,
                 results.counter(linear, "runs"), "");
  claims.at_most(
      "loop of 8 components whose derivative reads 2, in 4 MiB: forward steps, relative to a "
      "loop of these 2",
      1.02, results.counter(mixed, "share"), "");
}

}  // namespace palimpsest::benchmarks
