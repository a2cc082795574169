// Overhead of a node of one element: recording, differentiating, planning and running a chain of t
// ← t·t + a.
#include <benchmark/benchmark.h>

#include "benchmarks/calibration.h"
#include "benchmarks/claims.h"
#include "palimpsest.h"

using namespace palimpsest;
using benchmark::State;

namespace {

constexpr std::int64_t steps = 50'000;

struct Chain {
  Var start;
  Var end;
};

Chain record_chain(Tape& tape) {
  const Var start = tape.parameter(Tensor::scalar(0.1));
  const Var a = tape.constant(Tensor::scalar(0.2));
  Var t = start;
  for (std::int64_t step = 0; step < steps; ++step) t = t * t + a;
  return {start, t};
}

/// Counts the seconds per node.
void count_time(State& state, std::int64_t nodes) {
  using benchmark::Counter;
  state.counters["seconds_per_node"] =
      Counter(static_cast<double>(nodes), Counter::kIsIterationInvariantRate | Counter::kInvert);
}

void record(State& state) {
  Tape tape;
  for (auto _ : state) {
    tape.clear();
    record_chain(tape);
  }
  count_time(state, tape.node_count());
  state.counters["bytes_per_node"] =
      static_cast<double>(tape.metadata_bytes()) / static_cast<double>(tape.node_count());
}

void record_and_differentiate(State& state) {
  Tape tape;
  for (auto _ : state) {
    tape.clear();
    const Chain chain = record_chain(tape);
    benchmark::DoNotOptimize(gradient(chain.end, chain.start));
  }
  count_time(state, 2 * steps);
}

/// Plans forward and backward within `state.range(0)` percent of keep-all memory.
void plan(State& state) {
  Tape tape;
  const Chain chain = record_chain(tape);
  const ValueId target = gradient(chain.end, chain.start).id();
  const Bytes everything = make_plan(graph_of(tape, {&target, 1}, 1), *keep_all()).keep_all_peak;
  const Bytes budget = everything * state.range(0) / 100;
  for (auto _ : state) {
    const Plan plan = make_plan(graph_of(tape, {&target, 1}, 1), *automatic(), budget);
    state.counters["peak_bytes"] = static_cast<double>(plan.predicted_peak());
  }
  count_time(state, tape.node_count());
}

/// Runs forward and backward on `state.range(0)` threads; planning and layout are done before.
void run(State& state) {
  Tape tape;
  const Chain chain = record_chain(tape);
  const RunOptions options{.planner = keep_all(), .threads = static_cast<int>(state.range(0))};
  backward(chain.end, options);
  std::int64_t computed = 0;
  for (auto _ : state) {
    const Gradients gradients = backward(chain.end, options);
    state.SetIterationTime(gradients.report().run_seconds);
    computed = gradients.report().computed;
    state.counters["peak_bytes"] = static_cast<double>(gradients.report().measured_peak);
  }
  count_time(state, computed);
}

/// A training step on four elements, on the given tape.
void step(Tape& tape, const Tensor& weights, const Tensor& examples) {
  const Var w = tape.parameter(weights);
  const Var x = tape.constant(examples);
  benchmark::DoNotOptimize(backward(mean(square(w * x - 1.0))).loss().raw());
}

void step_on_cleared_tape(State& state) {
  const Tensor weights = Tensor::ones({4}), examples = Tensor::ones({4});
  Tape tape;
  for (auto _ : state) {
    tape.clear();
    step(tape, weights, examples);
  }
}

/// Each step has a tape of its own. The tapes share an evaluator, and with it plans and memory.
void step_on_fresh_tape(State& state) {
  const Tensor weights = Tensor::ones({4}), examples = Tensor::ones({4});
  const auto evaluator = lazy();
  for (auto _ : state) {
    Tape tape(evaluator);
    step(tape, weights, examples);
  }
}

/// Likewise, without sharing: each step plans.
void step_on_lone_tape(State& state) {
  const Tensor weights = Tensor::ones({4}), examples = Tensor::ones({4});
  for (auto _ : state) {
    Tape tape;
    step(tape, weights, examples);
  }
}

/// A step, which also returns two intermediate values if `state.range(0)` is 2.
void step_with_outputs(State& state) {
  const Tensor weights = Tensor::ones({4}), examples = Tensor::ones({4});
  Tape tape;
  for (auto _ : state) {
    tape.clear();
    const Var y = tape.parameter(weights) * tape.constant(examples);
    const Var rest = y - 1.0;
    const Gradients gradients = state.range(0) == 0 ? backward(mean(square(rest)))
                                                    : backward(mean(square(rest)), {y, rest});
    benchmark::DoNotOptimize(gradients.loss().raw());
  }
}

BENCHMARK(record)->Unit(benchmark::kMillisecond)->Repetitions(3);
BENCHMARK(record_and_differentiate)->Unit(benchmark::kMillisecond)->Repetitions(3);
BENCHMARK(plan)->Arg(100)->Arg(20)->Unit(benchmark::kMillisecond);
BENCHMARK(run)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseManualTime();
BENCHMARK(step_on_cleared_tape);
BENCHMARK(step_on_fresh_tape);
BENCHMARK(step_on_lone_tape);
BENCHMARK(step_with_outputs)->Arg(0)->Arg(2);

void claim(const benchmarks::Results& results, benchmarks::Claims& claims) {
  claims.at_most("record and differentiate a scalar node", 1.4,
                 benchmarks::in_calibration_objects(
                     results.counter("record_and_differentiate", "seconds_per_node"), results),
                 benchmarks::calibration_unit);
  claims.at_most("metadata of a node", 200, results.counter("record", "bytes_per_node"), "bytes");
  claims.at_most(
      "peak of a chain at 20 % over keep-all", 0.2,
      results.counter("plan/20", "peak_bytes") / results.counter("plan/100", "peak_bytes"),
      "of keep-all");
  claims.at_most("a step on a fresh tape that shares an evaluator", 3,
                 results.seconds("step_on_fresh_tape") / results.seconds("step_on_cleared_tape"),
                 "of a cleared tape");
  claims.at_most("a step on a fresh tape of its own, which plans", 20,
                 results.seconds("step_on_lone_tape") / results.seconds("step_on_cleared_tape"),
                 "of a cleared tape");
  claims.at_most("a step with two auxiliary outputs", 1.5,
                 results.seconds("step_with_outputs/2") / results.seconds("step_with_outputs/0"),
                 "of one without");
}

}  // namespace

int main(int argc, char** argv) {
  benchmarks::register_calibration();
  return benchmarks::run_suite(argc, argv, claim);
}
