// Training steps against PyTorch's, in turns; figures are medians of the ratio.
// benchmarks/peers/models.py holds the same models. Without PyTorch 2 the suite does nothing (see
// benchmarks/python_peer.h).
#include <benchmark/benchmark.h>

#include <chrono>
#include <memory>
#include <optional>

#include "benchmarks/claims.h"
#include "benchmarks/process.h"
#include "benchmarks/python_peer.h"
#include "benchmarks/training/loop.h"
#include "benchmarks/training/models.h"
#include "benchmarks/turns.h"

using namespace palimpsest;
using namespace palimpsest::benchmarks;
using benchmark::State;

namespace {

/// A model, and limits of our step's time and activation bytes as ratios to PyTorch's.
struct Row {
  std::string model;
  double time;
  std::optional<double> bytes = {};
  /// Our budget in per cent of keep-all memory, where PyTorch recomputes.
  std::optional<int> percent = {};
  std::optional<double> replayed = {};  ///< limit of the time of a replayed `Program`
  bool budgeted = false;  ///< our budget is the gradients and the limit of activation bytes

  std::string name() const { return model + (percent ? "_checkpointed" : ""); }
};

const Row rows[] = {
    {"mlp", 0.92, 0.6},
    {"gpt", 0.92, 0.6, {}, {}, true},
    {"conv", 0.8, 0.6},
    {"lstm", 1.0, 0.7},
    {"rnn", 0.6, 0.7},
    {"pde", 0.10, 0.4},
    {"pde", 0.05, 0.15, 5},
    {"small_pde", 0.03, {}, {}, 0.015},
    {"small_mlp", 0.03, {}, {}, 0.03},
    {"tiny", 0.03, {}, {}, 0.03},
};

Model model_of(const Row& row) {
  return row.model == "tiny" ? tiny_additions() : training_model(row.model);
}

/// Bytes that PyTorch's step takes in addition to parameters and gradients. This is the median over
/// fresh processes that have loaded everything they need; their resident sizes differ by a quarter.
double peer_activation_bytes(const Row& row) {
  std::vector<double> bytes;
  for (int run = 0; run < 7; ++run) {
    Process peer(python_command(PALIMPSEST_PEER, {row.name(), "peak"}), {});
    const double gradients = std::stod(peer.read_line());
    bytes.push_back(std::stod(peer.read_line()) - gradients);
  }
  return median(bytes);
}

RunOptions options_of(const Row& row, int threads, double gradient_bytes, double their_bytes) {
  RunOptions options{.threads = threads};
  if (row.budgeted) {
    options.memory_budget = static_cast<Bytes>(gradient_bytes + *row.bytes * their_bytes);
  }
  if (row.percent) {
    Tape tape;
    const Bytes everything =
        plan_backward(model_of(row).record_loss(tape), {.planner = keep_all()}).keep_all_peak;
    options.memory_budget = everything * *row.percent / 100;
  }
  return options;
}

/// Runs steps until native code serves if it is faster, as in a long training.
template <class F>
void warm_up(F step) {
  constexpr std::chrono::seconds long_enough(4);
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - start < long_enough) step();
}

void compare(State& state, const Row& row, int threads) {
  Process peer(python_command(PALIMPSEST_PEER, {row.name(), std::to_string(threads)}),
               pytorch_tuning(threads));
  const double gradient_bytes = std::stod(peer.read_line());
  const bool looks_at_bytes = row.bytes && (threads == 1 || row.budgeted);
  const double their_bytes = looks_at_bytes ? peer_activation_bytes(row) : 0;
  const RunOptions options = options_of(row, threads, gradient_bytes, their_bytes);
  Loop loop(model_of(row), options);
  warm_up([&] { loop.step(); });
  if (gradient_bytes != static_cast<double>(loop.gradient_bytes())) {
    state.SkipWithError("PyTorch's model has other parameters");
    return;
  }
  Turns turns;
  turns.add_once("ours", [&] { loop.step(); });
  turns.add("theirs", [&](std::int64_t times) { return seconds_of_calls(peer, times); });
  std::optional<Runner> runner;
  if (row.replayed) {
    runner.emplace(Program::gradients(model_of(row).record_loss, options));
    warm_up([&] { runner->run(); });
    turns.add_once("replayed", [&] { runner->run(); });
  }
  for (auto _ : state) {
    turns.take(5);
    state.SetIterationTime(turns.seconds("ours"));
  }
  if (row.replayed) state.counters["replayed_ratio"] = turns.ratio("replayed", "theirs");
  const Loop::Shares shares = loop.shares();
  state.counters["theirs"] = turns.seconds("theirs");
  state.counters["ratio"] = turns.ratio("ours", "theirs");
  state.counters["running"] = shares.running;
  state.counters["kernels"] = loop.kernels();
  if (!looks_at_bytes) return;
  const auto ours = static_cast<double>(loop.activation_bytes());
  state.counters["activation_bytes"] = ours;
  state.counters["their_bytes"] = their_bytes;
  state.counters["bytes_ratio"] = ours / their_bytes;
}

void register_all() {
  for (const Row& row : rows) {
    for (const int threads : {1, 2}) {
      const std::string name = row.name() + "/" + std::to_string(threads);
      benchmark::RegisterBenchmark(name.c_str(),
                                   [&row, threads](State& state) { compare(state, row, threads); })
          ->Unit(benchmark::kMillisecond)
          ->Iterations(1)
          ->UseManualTime();
    }
  }
}

void claim(const Results& results, Claims& claims) {
  for (const Row& row : rows) {
    for (const char* threads : {"1", "2"}) {
      const std::string name = row.name() + "/" + threads;
      claims.at_most("a step of " + name, row.time, results.counter(name, "ratio"),
                     "of PyTorch's time");
      if (!row.replayed) continue;
      claims.at_most("a replayed step of " + name, *row.replayed,
                     results.counter(name, "replayed_ratio"), "of PyTorch's time");
    }
    if (!row.bytes) continue;
    claims.at_most("activations of " + row.name(), *row.bytes,
                   results.counter(row.name() + "/1", "bytes_ratio"), "of PyTorch's bytes");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (!peer_version(PALIMPSEST_PEER, "PyTorch", 2)) return 0;
  register_all();
  return run_suite(argc, argv, claim);
}
