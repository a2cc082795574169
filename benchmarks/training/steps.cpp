#include <benchmark/benchmark.h>

#include "benchmarks/training/loop.h"
#include "benchmarks/training/models.h"
#include "benchmarks/training/parts.h"
#include "benchmarks/training/roofline.h"
#include "benchmarks/turns.h"

namespace palimpsest::benchmarks {
namespace {

using benchmark::State;

/// The rates that `of_roofline` is relative to.
void measure_machine(State& state) {
  for (auto _ : state) measured_machine();
  const Machine& machine = measured_machine();
  state.counters["flops_per_second"] = machine.flops_per_second;
  for (std::size_t i = 0; i < machine.caches.size(); ++i) {
    const std::string level = "L" + std::to_string(i + 1);
    state.counters[level + "_bytes_per_second"] = machine.caches[i].bytes_per_second;
  }
  state.counters["memory_bytes_per_second"] = machine.bytes_per_second;
  state.counters["seconds_per_node"] = machine.seconds_per_node;
}

void train(State& state, const Model& model) {
  Loop forward_1(model, {.threads = 1});
  Loop forward_2(model, {.threads = 2});
  Loop step_1(model, {.threads = 1});
  Loop step_2(model, {.threads = 2});
  Turns turns;
  turns.add_once("forward_1", [&] { forward_1.forward(); });
  turns.add_once("forward_2", [&] { forward_2.forward(); });
  turns.add_once("step_1", [&] { step_1.step(); });
  turns.add_once("step_2", [&] { step_2.step(); });
  for (auto _ : state) {
    turns.take(3);
    state.SetIterationTime(turns.seconds("step_1"));
  }
  for (const char* name : {"forward_1", "forward_2", "step_2"}) {
    state.counters[name] = turns.seconds(name);
  }
  const Loop::Shares shares = step_1.shares();
  state.counters["recording"] = shares.recording;
  state.counters["running"] = shares.running;
  state.counters["kernels"] = step_1.kernels();
  state.counters["step_over_forward"] = turns.ratio("step_1", "forward_1");
  state.counters["speedup"] = turns.ratio("step_1", "step_2");
  state.counters["of_roofline"] =
      least_seconds(model, measured_machine()) / turns.seconds("step_1");
  state.counters["peak_bytes"] = static_cast<double>(step_1.report().measured_peak);
  state.counters["activation_bytes"] = static_cast<double>(step_1.activation_bytes());
}

}  // namespace

void register_steps() {
  benchmark::RegisterBenchmark("machine", measure_machine)
      ->Unit(benchmark::kMillisecond)
      ->Iterations(1);
  for (const Model& model : training_models()) {
    benchmark::RegisterBenchmark(model.name.c_str(), [=](State& state) { train(state, model); })
        ->Unit(benchmark::kMillisecond)
        ->Iterations(1)
        ->UseManualTime();
  }
}

void claim_steps(const Results& results, Claims& claims) {
  const auto gradient = [&](const std::string& name, double target) {
    claims.at_most("a step of " + name, target, results.counter(name, "step_over_forward"),
                   "of its forward part");
  };
  for (const char* name : {"mlp", "gpt"}) gradient(name, 3);
  for (const char* name : {"pde", "small_pde"}) gradient(name, 3.5);
  for (const char* name : {"gpt", "conv"}) {
    claims.at_least(std::string(name) + " on two threads", 1.8, results.counter(name, "speedup"),
                    "times as fast");
  }
  // Small models stay on one thread; the tolerance covers the noise between two measurements.
  for (const Model& model : training_models()) {
    claims.at_least(model.name + " with a second thread allowed", 0.95,
                    results.counter(model.name, "speedup"), "times as fast");
  }
}

}  // namespace palimpsest::benchmarks
