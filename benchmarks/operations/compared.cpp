#include "benchmarks/operations/compared.h"

#include <benchmark/benchmark.h>

#include <functional>
#include <string>
#include <vector>

#include "benchmarks/process.h"
#include "benchmarks/python_peer.h"
#include "benchmarks/turns.h"
#include "palimpsest.h"

namespace palimpsest::benchmarks {
namespace {

using benchmark::State;

/// An operation of normally distributed numbers, and of positions along the last axis in an index
/// of their shape. `operations/peer.py` has a function of that name.
struct Compared {
  std::string name;
  Shape shape;
  DType dtype;
  std::function<Var(const Var& x, const Var& index)> apply;
};

const std::vector<Compared>& compared() {
  static const Shape line{1 << 20};
  static const Shape rows{4096, 256};
  static const Shape short_rows{32768, 32};
  static const Shape columns{1024, 1024};
  static const std::vector<Compared> all = {
      {"sort_line", line, DType::f32, [](const Var& x, const Var&) { return sort(x).values; }},
      {"sort_line_f64", line, DType::f64, [](const Var& x, const Var&) { return sort(x).values; }},
      {"sort_rows", rows, DType::f32, [](const Var& x, const Var&) { return sort(x).values; }},
      {"sort_short_rows", short_rows, DType::f32,
       [](const Var& x, const Var&) { return sort(x).values; }},
      {"sort_columns", columns, DType::f32,
       [](const Var& x, const Var&) { return sort(x, 0).values; }},
      {"scatter_rows", columns, DType::f32,
       [](const Var& x, const Var& i) { return scatter(x, 1, i, x); }},
      {"scatter_columns", columns, DType::f32,
       [](const Var& x, const Var& i) { return scatter(x, 0, i, x); }},
      {"topk_line", line, DType::f32, [](const Var& x, const Var&) { return topk(x, 100).values; }},
      {"topk_rows", rows, DType::f32, [](const Var& x, const Var&) { return topk(x, 8).values; }},
      {"median_rows", rows, DType::f32,
       [](const Var& x, const Var&) { return median(x, 1).values; }},
      {"cumsum_rows", columns, DType::f32, [](const Var& x, const Var&) { return cumsum(x, 1); }},
      {"cumsum_columns", columns, DType::f32,
       [](const Var& x, const Var&) { return cumsum(x, 0); }},
      {"cumprod_rows", columns, DType::f32, [](const Var& x, const Var&) { return cumprod(x, 1); }},
      {"cummax_rows", columns, DType::f32,
       [](const Var& x, const Var&) { return cummax(x, 1).values; }},
      {"cummax_columns", columns, DType::f32,
       [](const Var& x, const Var&) { return cummax(x, 0).values; }},
      {"logcumsumexp_rows", columns, DType::f32,
       [](const Var& x, const Var&) { return logcumsumexp(x, 1); }},
      {"unfold_images",
       {8, 16, 56, 56},
       DType::f32,
       [](const Var& x, const Var&) { return unfold(x, 3, {.padding = 1}); }},
      {"fold_images",
       {8, 144, 3136},
       DType::f32,
       [](const Var& x, const Var&) { return fold(x, {56, 56}, 3, {.padding = 1}); }},
  };
  return all;
}

void compare(State& state, const Compared& row) {
  const Tensor x = Tensor::normal(row.shape, 1).to(row.dtype);
  const double size = static_cast<double>(row.shape[-1]);
  const Tensor index = Tensor::uniform(row.shape, 2, 0, size, DType::f64).to(DType::i64);
  Process peer(python_command(PALIMPSEST_OPERATIONS_PEER, {row.name}), pytorch_tuning(1));
  Runner runner(Program::values(
      [&](Tape& recorded) {
        return std::vector<Var>{row.apply(recorded.constant(x), recorded.constant(index))};
      },
      {.threads = 1}));
  Turns turns;
  turns.add_once("ours", [&] { runner.run(); });
  turns.add("theirs", [&](std::int64_t times) { return seconds_of_calls(peer, times); });
  for (auto _ : state) {
    turns.take(2);
    state.SetIterationTime(turns.seconds("ours"));
  }
  state.counters["theirs"] = turns.seconds("theirs");
  state.counters["ratio"] = turns.ratio("ours", "theirs");
}

}  // namespace

bool register_compared() {
  if (!peer_version(PALIMPSEST_OPERATIONS_PEER, "PyTorch", 2)) return false;
  for (const Compared& row : compared()) {
    benchmark::RegisterBenchmark(("compared/" + row.name).c_str(),
                                 [&row](State& state) { compare(state, row); })
        ->Unit(benchmark::kMicrosecond)
        ->Iterations(1)
        ->UseManualTime();
  }
  return true;
}

void claim_compared(const Results& results, Claims& claims) {
  for (const Compared& row : compared()) {
    claims.at_most(row.name, 1.5, results.counter("compared/" + row.name, "ratio"),
                   "of PyTorch's time");
  }
}

}  // namespace palimpsest::benchmarks
