#include "benchmarks/native/small_pde.h"

#include <benchmark/benchmark.h>

#include <cmath>
#include <string>

#include "benchmarks/process.h"
#include "benchmarks/python_peer.h"
#include "benchmarks/turns.h"

namespace palimpsest::benchmarks::small_pde {
namespace {

using benchmark::State;

constexpr std::int64_t cells = 100, steps = 2'000;

Var velocity_of(Tape& tape) { return tape.parameter(Tensor::scalar(0.2, DType::f64), "velocity"); }

Var start_of(Tape& tape) {
  Tensor start = Tensor::zeros({cells}, DType::f64);
  for (std::size_t i = 0; i < cells; ++i) {
    start.data<double>()[i] = std::sin(0.1 * static_cast<double>(i));
  }
  return tape.parameter(start);
}

Var advanced(const Var& u, const Var& velocity) {
  const Var left = roll(u, 1, 0);
  return u - velocity * (u - left) + 0.1 * (roll(u, -1, 0) - 2.0 * u + left);
}

void compare(State& state, Var (*record)(Tape&)) {
  Process peer(python_command(PALIMPSEST_SMALL_PDE_PEER, {"run"}),
               {{"XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false"}});
  const double expected = std::stod(peer.read_line());
  Runner runner(Program::gradients(record, {.threads = 1, .native = NativeCode::at_once}));
  Turns turns;
  turns.add_once("ours", [&] { runner.run(); });
  turns.add("theirs", [&](std::int64_t times) { return seconds_of_calls(peer, times); });
  for (auto _ : state) {
    turns.take(4);
    state.SetIterationTime(turns.seconds("ours"));
  }
  const double found = runner.gradients()["velocity"].item();
  state.counters["theirs"] = turns.seconds("theirs");
  state.counters["ratio"] = turns.ratio("ours", "theirs");
  state.counters["agree"] = std::abs(found - expected) <= 1e-9 * std::abs(expected);
}

struct Row {
  const char* name;
  const char* subject;
  Var (*record)(Tape&);
  double limit;
};

constexpr Row rows[] = {
    {"small_pde_xla/replayed", "the gradient of a small PDE, replayed", recorded, 1.0},
    {"small_pde_xla/scan", "the gradient of a small PDE as a loop", scanned, 0.8},
};

}  // namespace

Var recorded(Tape& tape) {
  const Var velocity = velocity_of(tape);
  Var u = start_of(tape);
  for (std::int64_t step = 0; step < steps; ++step) u = advanced(u, velocity);
  return sum(u * u);
}

Var scanned(Tape& tape) {
  const Var velocity = velocity_of(tape);
  const Var end = scan(start_of(tape), steps,
                       [&](const Var& u, const StepNumber&) { return advanced(u, velocity); });
  return sum(end * end);
}

bool register_comparisons() {
  if (!peer_version(PALIMPSEST_SMALL_PDE_PEER, "JAX", 0)) return false;
  for (const Row& row : rows) {
    benchmark::RegisterBenchmark(row.name, [&row](State& state) { compare(state, row.record); })
        ->Unit(benchmark::kMillisecond)
        ->Iterations(1)
        ->UseManualTime();
  }
  return true;
}

void claim(const Results& results, Claims& claims) {
  for (const Row& row : rows) {
    claims.at_least(std::string(row.name) + ": both gradients agree", 1,
                    results.counter(row.name, "agree"), "");
    claims.at_most(row.subject, row.limit, results.counter(row.name, "ratio"), "of XLA's time");
  }
}

}  // namespace palimpsest::benchmarks::small_pde
