#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>

#include "benchmarks/loops/parts.h"
#include "benchmarks/loops/ring.h"
#include "benchmarks/turns.h"
#include "checkpoint/chains/binomial.h"
#include "examples/support/resident.h"

namespace palimpsest::benchmarks {
namespace {

using benchmark::State;

constexpr Bytes budget = 16_MiB;

/// Forward steps; measures the time per step.
void forward(State& state) {
  constexpr std::int64_t steps = 50'000;
  double ours = 0;
  double theirs = 0;
  Turns turns;
  turns.add_once("ours", [&] {
    const Ring ring(steps);
    Var loss = ring.loss;
    const RunOptions options{.threads = 1};
    evaluate({&loss, 1}, options);
    ours = loss.item();
  });
  turns.add_once("by_hand", [&] { theirs = by_hand::run(steps); });
  for (auto _ : state) {
    turns.take(4);
    state.SetIterationTime(turns.seconds("ours") / steps);
  }
  state.counters["by_hand"] = turns.seconds("by_hand") / steps;
  state.counters["ratio"] = turns.ratio("ours", "by_hand");
  state.counters["agree"] = std::abs(ours - theirs) < 1e-9 * std::abs(theirs);
}

/// A gradient within the budget, against the hand-written one with the same number of states.
void gradient(State& state) {
  constexpr std::uint32_t steps = 20'000;
  constexpr Bytes some = 1_MiB;
  std::uint32_t states = 0;
  double ours = 0;
  double theirs = 0;
  const auto run = [&] {
    const Ring ring(steps);
    const Gradients gradients = backward(ring.loss, {.memory_budget = some, .threads = 1});
    ours = gradients[ring.c].item();
    states = gradients.report().loops.at(0).states;
  };
  run();
  Turns turns;
  turns.add_once("ours", run);
  turns.add_once("by_hand", [&] { theirs = by_hand::gradient(steps, states).c; });
  for (auto _ : state) {
    turns.take(4);
    state.SetIterationTime(turns.seconds("ours"));
  }
  state.counters["states"] = states;
  state.counters["by_hand"] = turns.seconds("by_hand");
  state.counters["ratio"] = turns.ratio("ours", "by_hand");
  state.counters["agree"] = std::abs(ours - theirs) < 1e-7 * std::abs(theirs);
}

/// A million steps and their gradient.
void million(State& state) {
  constexpr std::int64_t steps = 1'000'000;
  const auto gradients = [](std::int64_t count) {
    const Ring ring(count);
    return backward(ring.loss, {.memory_budget = budget, .threads = 1}).report();
  };
  examples::restart_peak_resident();
  gradients(10'000);
  const Bytes before = examples::peak_resident();
  examples::restart_peak_resident();
  Report report;
  for (auto _ : state) {
    const double start = now();
    report = gradients(steps);
    state.SetIterationTime(now() - start);
  }
  state.counters["resident_growth"] = static_cast<double>(examples::peak_resident() - before);
  const double start = now();
  benchmark::DoNotOptimize(by_hand::run(steps));
  const double forward_seconds = now() - start;
  const Report::Loop& loop = report.loops.at(0);
  const double factor = static_cast<double>(binomial_forward_steps(steps, loop.states)) / steps;
  state.counters["by_hand"] = forward_seconds;
  state.counters["factor"] = factor;
  state.counters["peak_bytes"] = static_cast<double>(report.measured_peak);
  state.counters["of_budget"] =
      static_cast<double>(report.measured_peak) / static_cast<double>(budget);
  state.counters["states"] = loop.states;
}

/// Gradients of several trajectories in one program.
void ensemble(State& state) {
  constexpr int members = 8;
  constexpr std::int64_t steps = 2'000;
  const auto gradients = [](int threads) {
    Tape tape;
    const Var c = tape.parameter(Tensor::scalar(Ring::speed, DType::f64));
    Var loss;
    for (int k = 0; k < members; ++k) {
      const Var start = tape.constant(ring_start()) * (1.0 + 0.1 * k);
      const Var end = scan(start, steps, [&](const Var& u, const StepNumber&) {
        return u - c * sin(u - roll(u, 1, 0));
      });
      loss = k == 0 ? sum(end * end) : loss + sum(end * end);
    }
    return backward(loss, {.memory_budget = budget, .threads = threads})[c].item();
  };
  Turns turns;
  double one = 0;
  double two = 0;
  turns.add_once("one", [&] { one = gradients(1); });
  turns.add_once("two", [&] { two = gradients(2); });
  for (auto _ : state) {
    turns.take(4);
    state.SetIterationTime(turns.seconds("two"));
  }
  state.counters["one_thread"] = turns.seconds("one");
  state.counters["times_as_fast"] = turns.ratio("one", "two");
  state.counters["agree"] = one == two;
}

/// The gradient of one loop whose steps are too small to be split between threads.
void ahead(State& state) {
  constexpr std::int64_t steps = 20'000;
  std::uint32_t states = 0;
  const auto gradient = [&](int threads) {
    Tape tape;
    const Var c = tape.parameter(Tensor::scalar(Ring::speed, DType::f64));
    const Var end = scan(tape.constant(ring_start()), steps, [&](const Var& u, const StepNumber&) {
      return u - c * sin(u - roll(u, 1, 0));
    });
    const Gradients found =
        backward(sum(end * end), {.memory_budget = budget / 8, .threads = threads});
    states = found.report().loops.at(0).ahead;
    return found[c].item();
  };
  Turns turns;
  double one = 0;
  double two = 0;
  turns.add_once("one", [&] { one = gradient(1); });
  turns.add_once("two", [&] { two = gradient(2); });
  for (auto _ : state) {
    turns.take(8);
    state.SetIterationTime(turns.seconds("two"));
  }
  state.counters["one_thread"] = turns.seconds("one");
  state.counters["times_as_fast"] = turns.ratio("one", "two");
  state.counters["ahead"] = states;
  state.counters["agree"] = one == two;
}

/// A gated recurrent cell of width 128 for 16 sequences: as a loop, which keeps the values that its
/// derivative reads, and recorded step by step.
void keeping(State& state) {
  constexpr std::int64_t width = 128, sequences = 16, steps = 20;
  const auto record = [](bool as_loop) {
    return Runner(Program::gradients(
        [as_loop](Tape& tape) {
          const Var weight =
              tape.parameter(Tensor::normal({width, 2 * width}, 1, 0, 0.1, DType::f64), "weight");
          const auto cell = [&](const Var& h) {
            const Var both = matmul(h, weight);
            const Var gate = sigmoid(slice(both, 1, {.start = width}));
            return gate * tanh(slice(both, 1, {.stop = width})) + (1.0 - gate) * h;
          };
          Var h = tape.constant(Tensor::normal({sequences, width}, 2, 0, 1, DType::f64));
          if (as_loop) {
            h = scan(h, steps, [&](const Var& x, const StepNumber&) { return cell(x); });
          } else {
            for (std::int64_t step = 0; step < steps; ++step) h = cell(h);
          }
          return sum(h * h);
        },
        {.threads = 1, .native = NativeCode::at_once}));
  };
  Runner loop = record(true);
  Runner recorded = record(false);
  Turns turns;
  turns.add_once("loop", [&] { loop.run(); });
  turns.add_once("recorded", [&] { recorded.run(); });
  for (auto _ : state) {
    turns.take(8);
    state.SetIterationTime(turns.seconds("loop"));
  }
  const auto peak = [](const Runner& runner) {
    return static_cast<double>(runner.report().measured_peak);
  };
  state.counters["recorded"] = turns.seconds("recorded");
  state.counters["ratio"] = turns.ratio("loop", "recorded");
  state.counters["peak_bytes"] = peak(loop);
  state.counters["recorded_bytes"] = peak(recorded);
  const double found = loop.gradients().loss().item();
  const double expected = recorded.gradients().loss().item();
  state.counters["agree"] = std::abs(found - expected) <= 1e-9 * std::abs(expected);
}

}  // namespace

void register_by_hand() {
  benchmark::RegisterBenchmark("forward_step", forward)
      ->Unit(benchmark::kMicrosecond)
      ->Iterations(1)
      ->UseManualTime();
  benchmark::RegisterBenchmark("gradient", gradient)
      ->Unit(benchmark::kMillisecond)
      ->Iterations(1)
      ->UseManualTime();
}

void claim_by_hand(const Results& results, Claims& claims) {
  for (const char* row : {"forward_step", "gradient"}) {
    claims.at_least(std::string(row) + ": what both compute agrees", 1,
                    results.counter(row, "agree"), "");
  }
  claims.at_most("a step forward of 1,000 cells", 1.3, results.counter("forward_step", "ratio"),
                 "of the time of a loop by hand");
  claims.at_most("the gradient of 20,000 steps of 1,000 cells within 1 MiB", 1.5,
                 results.counter("gradient", "ratio"),
                 "of the time of an adjoint by hand with as many states");
}

void register_million() {
  benchmark::RegisterBenchmark("ensemble", ensemble)
      ->Unit(benchmark::kMillisecond)
      ->Iterations(1)
      ->UseManualTime();
  benchmark::RegisterBenchmark("ahead", ahead)
      ->Unit(benchmark::kMillisecond)
      ->Iterations(1)
      ->UseManualTime();
  benchmark::RegisterBenchmark("keeping", keeping)
      ->Unit(benchmark::kMillisecond)
      ->Iterations(1)
      ->UseManualTime();
  benchmark::RegisterBenchmark("million", million)
      ->Unit(benchmark::kMillisecond)
      ->Iterations(1)
      ->UseManualTime();
}

void claim_million(const Results& results, Claims& claims) {
  claims.at_least("ensemble: one and two threads agree", 1, results.counter("ensemble", "agree"),
                  "");
  claims.at_least("the gradient of eight trajectories on two threads", 1.6,
                  results.counter("ensemble", "times_as_fast"), "times as fast");
  claims.at_least("ahead: one and two threads agree", 1, results.counter("ahead", "agree"), "");
  claims.at_least("the gradient of one loop of small steps on two threads", 1,
                  results.counter("ahead", "times_as_fast"), "times as fast");
  claims.at_least("keeping: both forms agree", 1, results.counter("keeping", "agree"), "");
  claims.at_most("the gradient of a recurrent cell as a loop that keeps values", 1.15,
                 results.counter("keeping", "ratio"), "of the time of steps recorded one by one");
  claims.at_most("peak of a million steps", 1, results.counter("million", "of_budget"),
                 "of the budget of 16 MiB");
  claims.at_most("resident growth from ten thousand steps to a million", 1_MiB,
                 results.counter("million", "resident_growth"), "bytes");
  const double optimal =
      results.counter("million", "by_hand") * (1 + results.counter("million", "factor"));
  claims.at_most("the gradient of a million steps", 5, results.seconds("million") / optimal,
                 "of the time of the hand-written loop times 1 + the optimal steps a step");
}

}  // namespace palimpsest::benchmarks
