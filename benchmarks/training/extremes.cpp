#include <benchmark/benchmark.h>

#include <string>

#include "benchmarks/calibration.h"
#include "benchmarks/training/loop.h"
#include "benchmarks/training/models.h"
#include "benchmarks/training/parts.h"
#include "benchmarks/turns.h"

namespace palimpsest::benchmarks {
namespace {

using benchmark::State;

/// exp(tanh(x/2 + y)·z) + x on 10⁷ elements: six operations, with the gradients of all three
/// operands if `differentiated`.
class Chain {
 public:
  Chain(DType dtype, bool differentiated, RunOptions options)
      : differentiated_(differentiated), options_(std::move(options)) {
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      operands_.push_back(Tensor::normal({10'000'000}, seed, 0, 1, dtype));
    }
  }

  void run() {
    tape_.clear();
    std::vector<Var> x;
    for (const Tensor& operand : operands_) x.push_back(tape_.parameter(operand));
    const Var y = exp(tanh(x[0] * 0.5 + x[1]) * x[2]) + x[0];
    std::vector<Var> targets{y};
    if (differentiated_) {
      for (const Var& each : gradient(y, x)) targets.push_back(each);
    }
    report_ = evaluate(targets, options_);
  }

  Bytes peak() const { return report_.measured_peak; }

 private:
  bool differentiated_;
  RunOptions options_;
  std::vector<Tensor> operands_;
  Tape tape_;
  Report report_;
};

void run_chain(State& state, DType dtype) {
  const RunOptions options{.threads = static_cast<int>(state.range(0))};
  RunOptions one_by_one = options;
  one_by_one.fuse = false;
  Chain forward(dtype, false, options);
  Chain gradients(dtype, true, options);
  Chain forward_alone(dtype, false, one_by_one);
  Chain gradients_alone(dtype, true, one_by_one);
  Turns turns;
  turns.add_once("forward", [&] { forward.run(); });
  turns.add_once("gradients", [&] { gradients.run(); });
  turns.add_once("forward alone", [&] { forward_alone.run(); });
  turns.add_once("gradients alone", [&] { gradients_alone.run(); });
  for (auto _ : state) {
    turns.take(3);
    state.SetIterationTime(turns.seconds("gradients"));
  }
  state.counters["forward"] = turns.seconds("forward");
  state.counters["forward_fused"] = turns.ratio("forward", "forward alone");
  state.counters["gradients_fused"] = turns.ratio("gradients", "gradients alone");
  state.counters["forward_bytes"] = static_cast<double>(forward.peak());
  state.counters["peak_bytes"] = static_cast<double>(gradients.peak());
}

constexpr DType chain_dtypes[] = {DType::f32, DType::bf16, DType::f16};

/// The name of the chain in the suite, for a dtype.
std::string chain_of(DType dtype) {
  return dtype == DType::f32 ? "chain" : "chain_" + std::string(name_of(dtype));
}

/// The time of a node of four elements from recording it to freeing it.
void run_tiny(State& state) {
  Loop loop(tiny_additions(), {.threads = 1});
  Runner runner(Program::gradients(tiny_additions().record_loss, {.threads = 1}));
  Turns turns;
  turns.add_once("step", [&] { loop.step(); });
  turns.add_once("replayed", [&] { runner.run(); });
  for (auto _ : state) {
    turns.take(2);
    state.SetIterationTime(turns.seconds("step") / tiny_nodes);
  }
  const Loop::Shares shares = loop.shares();
  state.counters["recording"] = shares.recording / tiny_nodes;
  state.counters["running"] = shares.running / tiny_nodes;
  state.counters["replayed"] = turns.seconds("replayed") / tiny_nodes;
  state.counters["kernels"] = loop.kernels() / tiny_nodes;
}

}  // namespace

void register_extremes() {
  for (const DType dtype : chain_dtypes) {
    benchmark::RegisterBenchmark(chain_of(dtype).c_str(), run_chain, dtype)
        ->Arg(1)
        ->Arg(2)
        ->Unit(benchmark::kMillisecond)
        ->Iterations(1)
        ->UseManualTime();
  }
  benchmark::RegisterBenchmark("tiny", run_tiny)
      ->Unit(benchmark::kNanosecond)
      ->Iterations(1)
      ->UseManualTime();
}

void claim_extremes(const Results& results, Claims& claims) {
  for (const DType dtype : chain_dtypes) {
    const std::string elements = "chain of six operations on 10⁷ elements, ";
    for (const std::string part : {"forward", "gradients"}) {
      claims.at_most(elements + std::string(name_of(dtype)) + ", " + part, 0.35,
                     results.counter(chain_of(dtype) + "/1", part + "_fused"),
                     "of the time of single operations");
    }
  }
  // About 0.03 of the time that libtorch took for the same program.
  claims.at_most("a node of four elements, recorded, differentiated, run and freed", 0.42,
                 in_calibration_objects(results.seconds("tiny"), results), calibration_unit);
  claims.at_most("a node of four elements in a program that is run again, forward and backward",
                 0.08, in_calibration_objects(results.counter("tiny", "replayed"), results),
                 calibration_unit);
}

}  // namespace palimpsest::benchmarks
