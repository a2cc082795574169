// Time and peak bytes of single operations, forward and with their gradients, in f32. Kernels of
// other kinds are compared with PyTorch's, if there is one.
#include <benchmark/benchmark.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "benchmarks/claims.h"
#include "benchmarks/operations/compared.h"
#include "palimpsest.h"

using namespace palimpsest;
using benchmark::State;

namespace {

/// An operation, and the shapes of its operands, which are normally distributed.
struct Row {
  std::string name;
  std::vector<Shape> shapes;
  std::function<Var(std::span<const Var>)> apply;
};

std::vector<Row> rows() {
  const Shape large{1 << 20};
  const Shape image{32, 32, 28, 28};
  const Shape square_matrix{512, 512};
  const Shape heads{2, 6, 1024, 64};
  using In = std::span<const Var>;
  return {
      {"add", {large, large}, [](In x) { return x[0] + x[1]; }},
      {"multiply_broadcast", {{1024, 1024}, {1024}}, [](In x) { return x[0] * x[1]; }},
      {"multiply_short_rows", {{1 << 19, 2}, {1 << 19, 1}}, [](In x) { return x[0] * x[1]; }},
      {"exp", {large}, [](In x) { return exp(x[0]); }},
      {"tanh", {large}, [](In x) { return tanh(x[0]); }},
      {"lgamma", {large}, [](In x) { return lgamma(square(x[0])); }},
      {"digamma", {large}, [](In x) { return digamma(square(x[0])); }},
      {"erfinv", {large}, [](In x) { return erfinv(tanh(x[0])); }},
      {"i0", {large}, [](In x) { return i0(x[0]); }},
      {"gelu", {large}, [](In x) { return gelu(x[0]); }},
      {"sum_rows", {{1024, 1024}}, [](In x) { return sum(x[0], {1}); }},
      {"sum_columns", {{1024, 1024}}, [](In x) { return sum(x[0], {0}); }},
      {"logsumexp", {{1024, 1024}}, [](In x) { return logsumexp(x[0], {1}); }},
      {"softmax", {{1024, 1024}}, [](In x) { return softmax(x[0]); }},
      {"layer_norm",
       {{4096, 256}, {256}, {256}},
       [](In x) { return layer_norm(x[0], x[1], x[2]); }},
      {"group_norm", {image, {32}, {32}}, [](In x) { return group_norm(x[0], 4, x[1], x[2]); }},
      {"transpose", {{1024, 1024}}, [](In x) { return transpose(x[0]); }},
      {"concat", {large, large}, [](In x) { return concat({x[0], x[1]}, 0); }},
      {"matmul", {square_matrix, square_matrix}, [](In x) { return matmul(x[0], x[1]); }},
      {"matmul_batched", {{64, 64, 64}, {64, 64, 64}}, [](In x) { return matmul(x[0], x[1]); }},
      {"conv2d",
       {image, {32, 32, 3, 3}},
       [](In x) { return conv2d(x[0], x[1], {}, {.padding = 1}); }},
      {"conv2d_depthwise",
       {image, {32, 1, 3, 3}},
       [](In x) { return conv2d(x[0], x[1], {}, {.padding = 1, .groups = 32}); }},
      {"attention",
       {heads, heads, heads},
       [](In x) { return scaled_dot_product_attention(x[0], x[1], x[2], {.causal = true}); }},
  };
}

/// Records and runs the operation; with the gradients of all operands if `differentiated`.
void run(State& state, const Row& row, bool differentiated) {
  std::vector<Tensor> operands;
  for (const Shape& shape : row.shapes) operands.push_back(Tensor::normal(shape, operands.size()));
  Tape tape;
  Report report;
  for (auto _ : state) {
    tape.clear();
    std::vector<Var> inputs;
    for (const Tensor& operand : operands) inputs.push_back(tape.parameter(operand));
    const Var y = row.apply(inputs);
    std::vector<Var> targets;
    if (differentiated) targets = gradient(y, inputs);
    targets.push_back(y);
    report = evaluate(targets);
  }
  state.counters["peak_bytes"] = static_cast<double>(report.measured_peak);
}

/// Oscillations with damping at 400 times, as in examples/compared/levenberg_marquardt.cpp.
struct Signal {
  Tape tape;
  Var p = tape.parameter(Tensor::from({0.8, 0.8, 0.2, 0.2, 3.2, 6.8, 0.0, 0.0}, {4, 2}));
  Var t = tape.constant(Tensor::arange(400, DType::f64).reshape({400, 1})) / 40;
  std::array<Var, 4> q = unstack<4>(p);
  Var y = sum(q[0] * exp(-q[1] * t) * cos(q[2] * t + q[3]), {1});
};

void value_of_signal(State& state) {
  Signal signal;
  for (auto _ : state) {
    benchmark::DoNotOptimize(signal.y.value().raw());
    signal.tape.drop(signal.y.id());
  }
}

void jacobian_of_signal(State& state) {
  const Signal signal;
  for (auto _ : state) benchmark::DoNotOptimize(jacobian(signal.y, signal.p).raw());
}

void register_all() {
  benchmark::RegisterBenchmark("signal", value_of_signal)->UseRealTime();
  benchmark::RegisterBenchmark("signal/jacobian", jacobian_of_signal)->UseRealTime();
  for (const Row& row : rows()) {
    for (const bool differentiated : {false, true}) {
      const std::string name = row.name + (differentiated ? "/gradient" : "/forward");
      benchmark::RegisterBenchmark(
          name.c_str(), [row, differentiated](State& state) { run(state, row, differentiated); })
          ->Unit(benchmark::kMicrosecond)
          ->MinTime(0.2)
          ->UseRealTime();
    }
  }
}

bool has_peer = false;

void claim(const benchmarks::Results& results, benchmarks::Claims& claims) {
  for (const char* name : {"matmul", "conv2d", "attention"}) {
    claims.at_most(std::string(name) + " with gradients", 4,
                   results.seconds(std::string(name) + "/gradient") /
                       results.seconds(std::string(name) + "/forward"),
                   "of its forward time");
  }
  claims.at_most("peak of attention with gradients", 0.5,
                 results.counter("attention/gradient", "peak_bytes") / (12.0 * 1024 * 1024 * 4),
                 "of all its scores");
  for (const std::string name : {"lgamma", "digamma", "erfinv", "i0"}) {
    claims.at_most(name, 45, results.seconds(name + "/forward") / results.seconds("exp/forward"),
                   "of exp's time");
  }
  claims.at_most("product with numbers for rows of 2", 4,
                 results.seconds("multiply_short_rows/forward") /
                     results.seconds("multiply_broadcast/forward"),
                 "of that with rows of 1,024");
  claims.at_most("Jacobian with 8 columns", 20,
                 results.seconds("signal/jacobian") / results.seconds("signal"),
                 "of the time of the function");
  if (has_peer) benchmarks::claim_compared(results, claims);
}

}  // namespace

int main(int argc, char** argv) {
  register_all();
  has_peer = benchmarks::register_compared();
  return benchmarks::run_suite(argc, argv, claim);
}
