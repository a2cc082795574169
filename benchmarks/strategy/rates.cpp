#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "benchmarks/models.h"
#include "benchmarks/strategy/parts.h"
#include "benchmarks/turns.h"

namespace palimpsest::benchmarks {
namespace {

using benchmark::State;

struct Row {
  const char* precision;
  std::optional<Precision> value;
};
const Row precisions[] = {
    {"single", {}}, {"mixed-bf16", Precision{}}, {"mixed-f16", Precision{.half = DType::f16}}};

std::string name_of_row(const Model& model, const Row& row) {
  return "rates/" + model.name + "/" + row.precision;
}

void by_rates(State& state, const Model& model, const Row& row) {
  const ModelFunction loss = [&](Tape& tape, std::span<const Var>, std::span<const Var>) {
    return model.record_loss(tape);
  };
  const ExecutionStrategy strategy{
      .precision = row.value, .gradient = GradientMode::full, .parallelism = ParallelMode::none};
  Execution execution(strategy);
  // Other work on the machine only adds to the seconds of rates and of steps, so take the minimum.
  double fastest = std::numeric_limits<double>::infinity();
  for (auto _ : state) {
    for (const double start = now(); now() < start + 2;) {
      fastest = std::min(fastest, execution.gradients(loss, {}, {}).report().run_seconds);
    }
    state.SetIterationTime(fastest);
  }
  state.counters["estimated_time"] = estimate(strategy, {.model = loss}).seconds / fastest;
}

}  // namespace

void register_rates() {
  for (const Model& model : models()) {
    for (const Row& row : precisions) {
      benchmark::RegisterBenchmark(name_of_row(model, row).c_str(),
                                   [model, &row](State& state) { by_rates(state, model, row); })
          ->Unit(benchmark::kMillisecond)
          ->Iterations(1)
          ->UseManualTime();
    }
  }
}

void claim_rates(const Results& results, Claims& claims) {
  for (const Model& model : models()) {
    for (const Row& row : precisions) {
      const std::string name = name_of_row(model, row);
      claims.at_most(name + ": the estimated time is off by", 0.25,
                     std::abs(results.counter(name, "estimated_time") - 1), "of the measured one");
    }
  }
}

}  // namespace palimpsest::benchmarks
