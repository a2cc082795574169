// Time and peak bytes of one gradient against its byte budget.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>

#include "benchmarks/calibration.h"
#include "benchmarks/claims.h"
#include "benchmarks/models.h"
#include "examples/support/resident.h"

using namespace palimpsest;
using benchmark::State;
using benchmarks::Model;

namespace {

constexpr int percents[] = {100, 60, 40, 30};

Bytes keep_all_peak(const Model& model) {
  Tape tape;
  return plan_backward(model.record_loss(tape)).keep_all_peak;
}

bool same(const Gradients& a, const Gradients& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return same_bits(x.gradient, y.gradient); });
}

/// A training step without its update, within `percent` of keep-all memory.
void step(State& state, const Model& model, int percent) {
  const Bytes everything = keep_all_peak(model);
  const RunOptions options{.memory_budget = everything * percent / 100};
  const Gradients expected = [&] {
    Tape other;
    return backward(model.record_loss(other));
  }();
  examples::restart_peak_resident();
  const Bytes resident = resident_size();
  Tape tape;
  bool exact = same(expected, backward(model.record_loss(tape), options));
  Bytes peak = 0;
  Bytes predicted = 0;
  std::uint32_t recomputed = 0;
  for (auto _ : state) {
    tape.clear();
    const Gradients gradients = backward(model.record_loss(tape), options);
    const Report& report = gradients.report();
    peak = std::max(peak, report.measured_peak);
    predicted = report.predicted_peak;
    recomputed = report.recomputed;
  }
  state.counters["resident_growth"] = static_cast<double>(examples::peak_resident() - resident);
  state.counters["budget_bytes"] = static_cast<double>(options.memory_budget);
  state.counters["predicted_bytes"] = static_cast<double>(predicted);
  state.counters["peak_bytes"] = static_cast<double>(peak);
  state.counters["recomputed"] = recomputed;
  state.counters["exact"] = exact;
}

/// A keep-all step on one thread; counts the share of its time outside of kernels.
void outside_kernels(State& state, const Model& model) {
  Tape tape;
  const RunOptions options{.planner = keep_all(), .threads = 1, .profile = true};
  backward(model.record_loss(tape), options);
  double kernels = 0;
  double all = 0;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    tape.clear();
    const Gradients gradients = backward(model.record_loss(tape), options);
    kernels += gradients.report().kernel_seconds;
    all += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  state.counters["share_outside"] = 1 - kernels / all;
}

/// Plans for a budget of one byte, until the error names the smallest feasible budget.
void refusal(State& state, const Model& model) {
  Tape tape;
  const Var loss = model.record_loss(tape);
  Bytes smallest = 0;
  for (auto _ : state) {
    try {
      backward(loss, {.memory_budget = 1});
    } catch (const BudgetError& error) {
      smallest = error.smallest_feasible();
    }
  }
  const Report report = backward(loss, {.memory_budget = smallest}).report();
  state.counters["smallest_bytes"] = static_cast<double>(smallest);
  state.counters["peak_bytes"] = static_cast<double>(report.measured_peak);
  state.counters["share_of_keep_all"] =
      static_cast<double>(smallest) / static_cast<double>(report.keep_all_peak);
}

void register_all() {
  benchmarks::register_calibration();
  for (const Model& model : benchmarks::models()) {
    for (const int percent : percents) {
      benchmark::RegisterBenchmark((model.name + "/" + std::to_string(percent)).c_str(),
                                   [model, percent](State& state) { step(state, model, percent); })
          ->Unit(benchmark::kMillisecond)
          ->MinTime(0.2)
          ->Repetitions(4)
          ->UseRealTime();
    }
    benchmark::RegisterBenchmark((model.name + "/refusal").c_str(),
                                 [model](State& state) { refusal(state, model); })
        ->Unit(benchmark::kMillisecond)
        ->Iterations(1);
  }
  const Model network = benchmarks::residual_network();
  benchmark::RegisterBenchmark((network.name + "/outside_kernels").c_str(),
                               [network](State& state) { outside_kernels(state, network); })
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
}

void claim(const benchmarks::Results& results, benchmarks::Claims& claims) {
  for (const Model& model : benchmarks::models()) {
    for (const int percent : percents) {
      const std::string name = model.name + "/" + std::to_string(percent);
      const double budget = results.counter(name, "budget_bytes");
      claims.at_most(name + ": predicted peak", 1,
                     results.counter(name, "predicted_bytes") / budget, "of the budget");
      claims.at_most(name + ": measured peak", 1,
                     results.counter(name, "peak_bytes") / results.counter(name, "predicted_bytes"),
                     "of the predicted");
      claims.at_least(name + ": gradients of the same bits", 1, results.counter(name, "exact"), "");
    }
    claims.at_most(model.name + ": a step at 40 %", 1.4,
                   results.seconds(model.name + "/40") / results.seconds(model.name + "/100"),
                   "of keep-all time");
    claims.at_most(model.name + ": a step at 30 %", 1.7,
                   results.seconds(model.name + "/30") / results.seconds(model.name + "/100"),
                   "of keep-all time");
    const std::string refused = model.name + "/refusal";
    claims.at_most(refused + ": naming the smallest budget", 4e6,
                   benchmarks::in_calibration_objects(results.seconds(refused), results),
                   benchmarks::calibration_unit);
    claims.at_most(
        refused + ": peak in that budget", 1,
        results.counter(refused, "peak_bytes") / results.counter(refused, "smallest_bytes"),
        "of it");
  }
  for (const int percent : percents) {
    const std::string name = "residual_network/" + std::to_string(percent);
    claims.at_most(name + ": growth of the process's resident size",
                   1.15 * results.counter(name, "budget_bytes") + 24 * 1024 * 1024,
                   results.counter(name, "resident_growth"), "bytes");
  }
  claims.at_most("residual_network: smallest budget", 0.3,
                 results.counter("residual_network/refusal", "share_of_keep_all"), "of keep-all");
  claims.at_most("residual_network: time outside kernels", 0.05,
                 results.counter("residual_network/outside_kernels", "share_outside"),
                 "of a keep-all step");
}

}  // namespace

int main(int argc, char** argv) {
  register_all();
  return benchmarks::run_suite(argc, argv, claim);
}
