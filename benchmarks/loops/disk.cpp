#include <benchmark/benchmark.h>

#include <cmath>
#include <filesystem>

#include "benchmarks/loops/parts.h"
#include "benchmarks/turns.h"
#include "palimpsest.h"

namespace palimpsest::benchmarks {
namespace {

using benchmark::State;

constexpr std::int64_t side = 128;
constexpr std::int64_t steps = 2'000;

/// Nonlinear diffusion on side × side cells, f64.
struct Plate {
  Tape tape;
  Var start = tape.parameter(first());
  Var loss;

  explicit Plate(const LoopOptions& options) {
    const Var end = scan(
        start, steps,
        [](const Var& u, const StepNumber&) {
          const Var around =
              roll(u, 1, 0) + roll(u, -1, 0) + roll(u, 1, 1) + roll(u, -1, 1) - 4.0 * u;
          return u + 0.1 * tanh(around) * exp(-u * u);
        },
        options);
    loss = sum(end * end);
  }

  static Tensor first() {
    Tensor u = Tensor::zeros({side, side}, DType::f64);
    for (std::int64_t i = 0; i < side * side; ++i) {
      u.data<double>()[static_cast<std::size_t>(i)] = std::sin(0.03 * static_cast<double>(i));
    }
    return u;
  }
};

/// Keeps states in one hundredth of the memory that holds all of them, and the rest in a file. The
/// system's page cache can hold the file, so this measures the path to the disk and back, not the
/// disk.
void disk(State& state) {
  const std::string directory = std::filesystem::temp_directory_path();
  Report all;
  Report some;
  Tensor expected;
  Tensor found;
  const auto run = [&](const LoopOptions& options, Bytes budget, Report& report, Tensor& gradient) {
    const Plate plate(options);
    const Gradients gradients = backward(plate.loss, {.memory_budget = budget, .threads = 1});
    report = gradients.report();
    gradient = gradients[plate.start].clone();
  };
  run({}, unlimited, all, expected);
  const Bytes budget = all.measured_peak / 100;
  Turns turns;
  turns.add_once("memory", [&] { run({}, unlimited, all, expected); });
  turns.add_once("disk", [&] { run({.spill = directory}, budget, some, found); });
  turns.add_once("no disk", [&] { run({}, budget, some, found); });
  run({.spill = directory}, budget, some, found);
  const Report::Loop loop = some.loops.at(0);
  for (auto _ : state) {
    turns.take(10);
    state.SetIterationTime(turns.seconds("disk"));
  }
  state.counters["memory"] = turns.seconds("memory");
  state.counters["ratio"] = turns.ratio("disk", "memory");
  state.counters["without"] = turns.ratio("no disk", "memory");
  state.counters["states"] = loop.states;
  state.counters["writes"] = static_cast<double>(loop.disk_writes);
  state.counters["reads"] = static_cast<double>(loop.disk_reads);
  state.counters["same_bits"] = same_bits(expected, found);
  state.counters["of_memory"] =
      static_cast<double>(some.measured_peak) / static_cast<double>(all.measured_peak);
}

}  // namespace

void register_disk() {
  benchmark::RegisterBenchmark("disk", disk)
      ->Unit(benchmark::kMillisecond)
      ->Iterations(1)
      ->UseManualTime();
}

void claim_disk(const Results& results, Claims& claims) {
  claims.at_least("disk: the gradient has the same bits", 1, results.counter("disk", "same_bits"),
                  "");
  claims.at_most("peak with a disk", 0.01, results.counter("disk", "of_memory"),
                 "of that with unlimited memory");
  claims.at_most("a gradient with files in the system's cache", 1.5,
                 results.counter("disk", "ratio"), "of its time with unlimited memory");
}

}  // namespace palimpsest::benchmarks
