#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "benchmarks/strategy/parts.h"
#include "benchmarks/turns.h"
#include "palimpsest.h"

namespace palimpsest::benchmarks {
namespace {

using benchmark::State;

/// A custom operation that takes 7 ms on one thread.
CustomOperation slow_operation() {
  const auto forward = [](const CustomCall& call) {
    std::this_thread::sleep_for(std::chrono::milliseconds(7));
    const auto x = call.inputs[0].data<float>();
    std::copy(x.begin(), x.end(), call.outputs[0].data<float>().begin());
  };
  const CustomOperation slope({.name = "slope", .forward = forward});
  return CustomOperation({.name = "slow", .forward = forward, .vjp = [slope](const Pullback& p) {
                            p.set(0, slope({p.adjoint()}));
                          }});
}

Var loss_of_branches(Tape& tape, const CustomOperation& slow) {
  Var loss;
  for (int k = 0; k < 4; ++k) {
    const Var one = sum(slow({tape.parameter(Tensor::full({10'000}, k))}));
    loss = k == 0 ? one : loss + one;
  }
  return loss;
}

/// The gradient of four branches whose values are not kept.
void branches(State& state, AllocationPolicy memory) {
  const CustomOperation slow = slow_operation();
  Turns turns;
  std::shared_ptr<Evaluator> evaluator[2];
  for (const int threads : {1, 2}) {
    const RunOptions options{.threads = threads, .memory = memory};
    evaluator[threads - 1] = lazy(options);
    turns.add_once(threads == 1 ? "one" : "two", [&, threads, options] {
      Tape tape(evaluator[threads - 1]);
      backward(loss_of_branches(tape, slow), options);
    });
  }
  for (auto _ : state) {
    turns.take(2);
    state.SetIterationTime(turns.seconds("two"));
  }
  state.counters["one_thread"] = turns.seconds("one");
  state.counters["times_as_fast"] = turns.ratio("one", "two");
}

const std::pair<const char*, AllocationPolicy> kinds[] = {
    {"branches/minimal_peak", AllocationPolicy::minimal_peak},
    {"branches/standard", AllocationPolicy::standard}};

}  // namespace

void register_branches() {
  for (const auto& [name, memory] : kinds) {
    benchmark::RegisterBenchmark(name, [memory](State& state) { branches(state, memory); })
        ->Unit(benchmark::kMillisecond)
        ->Iterations(1)
        ->UseManualTime();
  }
}

void claim_branches(const Results& results, Claims& claims) {
  for (const auto& [name, memory] : kinds) {
    claims.at_least(std::string(name) + ": the gradient of four branches on two threads", 1.8,
                    results.counter(name, "times_as_fast"), "times as fast");
  }
}

}  // namespace palimpsest::benchmarks
