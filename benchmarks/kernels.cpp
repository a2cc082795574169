// Matrix products in f32 against oneDNN's, in turns; figures are medians of the ratio. If oneDNN
// (Debian's libdnnl-dev) is missing at build time, measures our own rates only and claims nothing.
// If the instruction level multiplies bf16, also compares that with widening bf16 and multiplying
// in f32.
#include <benchmark/benchmark.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "autodiff/convert.h"
#include "benchmarks/claims.h"
#include "benchmarks/kernels/rival.h"
#include "benchmarks/turns.h"
#include "palimpsest.h"

using namespace palimpsest;
using namespace palimpsest::benchmarks;
using benchmark::State;

namespace {

/// An m×n result of products over k, with N or T for each operand as it is stored.
struct Row {
  std::int64_t m, n, k;
  const char* stored = "NN";

  std::string name() const {
    return std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) + stored;
  }
};

/// Cubes, and the products in perceptrons, transformers and convolutions, forward and backward.
const Row regular[] = {
    {64, 64, 64},
    {128, 128, 128},
    {256, 256, 256},
    {512, 512, 512},
    {1024, 1024, 1024},
    {2048, 2048, 2048},
    {4096, 4096, 4096},
    {128, 1024, 784},
    {128, 1024, 1024},
    {784, 1024, 128, "TN"},
    {1024, 1024, 128, "TN"},
    {128, 784, 1024, "NT"},
    {256, 256, 64, "NT"},
    {2048, 384, 384},
    {2048, 1536, 384},
    {2048, 384, 1536, "NT"},
    {384, 1536, 2048, "TN"},
    {50176, 64, 288},
};
const Row skinny[] = {
    {1, 1024, 1024}, {8, 1024, 1024}, {32, 1024, 512}, {128, 10, 1024}, {4096, 16, 1024},
};

/// Steps of small recurrent networks and filters, forward and backward.
const Row small[] = {
    {4, 4, 4},   {10, 10, 10},      {10, 10, 10, "NT"}, {10, 10, 10, "TN"}, {32, 32, 32},
    {32, 1, 32}, {32, 1, 32, "TN"}, {1, 128, 32},       {32, 128, 1},       {50, 50, 50},
};

struct Group {
  const char* name;
  std::span<const Row> rows;
  double least;  ///< geometric mean of our rate over oneDNN's
};
const Group groups[] = {{"regular", regular, 0.9}, {"skinny", skinny, 0.75}, {"small", small, 1}};

std::string name_of(const Group& group, const Row& row, int threads) {
  return group.name + ("/" + row.name()) + "/" + std::to_string(threads);
}

std::string name_of_bf16(const Row& row, int threads) {
  return "bf16/" + row.name() + "/" + std::to_string(threads);
}

double largest_difference(const Tensor& a, const Tensor& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.data<float>().size(); ++i) {
    largest = std::max<double>(largest, std::abs(a.data<float>()[i] - b.data<float>()[i]));
  }
  return largest;
}

void multiply(State& state, const Row& row, int threads) {
  const auto [m, n, k, stored] = row;
  Gemm<float> product{.transpose_a = stored[0] == 'T',
                      .transpose_b = stored[1] == 'T',
                      .m = m,
                      .n = n,
                      .k = k,
                      .ldc = n};
  const Tensor a = Tensor::normal({m, k}, 1);
  const Tensor b = Tensor::normal({k, n}, 2);
  const Tensor ours({m, n});
  const Tensor theirs = Tensor::zeros({m, n});
  product.a = a.data<float>().data();
  product.lda = product.transpose_a ? m : k;
  product.b = b.data<float>().data();
  product.ldb = product.transpose_b ? k : n;
  const Tensor workspace({parallel_gemm_workspace<float>(m, n, k, threads)}, DType::boolean);
  tbb::task_arena arena(threads);
  Turns turns;
  turns.add("ours", [&](std::int64_t times) {
    product.c = ours.data<float>().data();
    const double start = now();
    for (std::int64_t i = 0; i < times; ++i) {
      arena.execute([&] {
        gemm(product, {workspace.raw(), static_cast<std::size_t>(workspace.elements())});
      });
    }
    return now() - start;
  });
  if (has_rival()) {
    turns.add_once("theirs", [&] {
      product.c = theirs.data<float>().data();
      rival_gemm(product, threads);
    });
  }
  for (auto _ : state) {
    turns.take(0.5);
    state.SetIterationTime(turns.seconds("ours"));
  }
  const double operations = 2.0 * static_cast<double>(m * n * k);
  state.counters["flops_per_second"] = operations / turns.seconds("ours");
  if (!has_rival()) return;
  if (largest_difference(ours, theirs) > 1e-5 * static_cast<double>(k)) {
    state.SkipWithError("the products differ");
  }
  state.counters["theirs"] = operations / turns.seconds("theirs");
  state.counters["ratio"] = turns.ratio("theirs", "ours");
}

Operand operand(const Tensor& tensor) { return {tensor.raw(), {tensor.shape(), tensor.dtype()}}; }

/// Operands and results in bf16: multiplied directly, and widened to f32 before and narrowed after.
void multiply_bf16(State& state, const Row& row, int threads) {
  const auto [m, n, k, stored] = row;
  const bool ta = stored[0] == 'T';
  const bool tb = stored[1] == 'T';
  const Tensor a = Tensor::normal({m, k}, 1, 0, 1, DType::bf16);
  const Tensor b = Tensor::normal({k, n}, 2, 0, 1, DType::bf16);
  const Tensor narrow({m, n}, DType::bf16);
  const Tensor sums({m, n});
  const Tensor wide_a({m, k});
  const Tensor wide_b({k, n});
  const Bytes bytes = std::max(parallel_gemm_workspace<float>(m, n, k, threads),
                               parallel_gemm_workspace<BFloat16>(m, n, k, threads));
  const Tensor space({bytes}, DType::boolean);
  const std::span<std::byte> workspace(space.raw(), static_cast<std::size_t>(bytes));
  const auto product = [&]<class T>(const Tensor& left, const Tensor& right, T) {
    gemm(Gemm<T>{.transpose_a = ta,
                 .transpose_b = tb,
                 .m = m,
                 .n = n,
                 .k = k,
                 .a = left.data<T>().data(),
                 .lda = ta ? m : k,
                 .b = right.data<T>().data(),
                 .ldb = tb ? k : n,
                 .c = sums.data<float>().data(),
                 .ldc = n},
         workspace);
    convert(operand(sums), operand(narrow));
  };
  tbb::task_arena arena(threads);
  Turns turns;
  turns.add_once("narrow", [&] { arena.execute([&] { product(a, b, BFloat16()); }); });
  turns.add_once("widened", [&] {
    arena.execute([&] {
      convert(operand(a), operand(wide_a));
      convert(operand(b), operand(wide_b));
      product(wide_a, wide_b, float());
    });
  });
  for (auto _ : state) {
    turns.take(0.5);
    state.SetIterationTime(turns.seconds("narrow"));
  }
  const double operations = 2.0 * static_cast<double>(m * n * k);
  state.counters["flops_per_second"] = operations / turns.seconds("narrow");
  state.counters["widened"] = operations / turns.seconds("widened");
  state.counters["ratio"] = turns.ratio("widened", "narrow");
}

void claim_bf16(const Results& results, Claims& claims) {
  for (const int threads : {1, 2}) {
    double sum = 0;
    for (const Row& row : regular) {
      sum += std::log(results.counter(name_of_bf16(row, threads), "ratio"));
    }
    claims.at_least(
        "regular products of bf16 on " + std::to_string(threads) + " threads, geometric mean,", 1.5,
        std::exp(sum / static_cast<double>(std::size(regular))), "times as fast as widened to f32");
  }
}

void claim(const Results& results, Claims& claims) {
  if (multiplies_bf16()) claim_bf16(results, claims);
  if (!has_rival()) return;
  for (const Group& group : groups) {
    for (const int threads : {1, 2}) {
      double sum = 0;
      for (const Row& row : group.rows) {
        sum += std::log(results.counter(name_of(group, row, threads), "ratio"));
      }
      claims.at_least(std::string(group.name) + " products on " + std::to_string(threads) +
                          " threads, geometric mean,",
                      group.least, std::exp(sum / static_cast<double>(group.rows.size())),
                      "of oneDNN's rate");
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (!has_rival()) std::cout << "Built without oneDNN (libdnnl-dev): nothing to compare with.\n";
  for (const Group& group : groups) {
    for (const Row& row : group.rows) {
      for (const int threads : {1, 2}) {
        benchmark::RegisterBenchmark(
            name_of(group, row, threads).c_str(),
            [&row, threads](State& state) { multiply(state, row, threads); })
            ->Unit(benchmark::kMicrosecond)
            ->Iterations(1)
            ->UseManualTime();
        if (!multiplies_bf16()) continue;
        benchmark::RegisterBenchmark(
            name_of_bf16(row, threads).c_str(),
            [&row, threads](State& state) { multiply_bf16(state, row, threads); })
            ->Unit(benchmark::kMicrosecond)
            ->Iterations(1)
            ->UseManualTime();
      }
    }
  }
  return run_suite(argc, argv, claim);
}
