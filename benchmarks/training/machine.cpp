#include "benchmarks/training/machine.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "benchmarks/turns.h"

namespace palimpsest::benchmarks {
namespace {

constexpr int wide = 16;
constexpr int accumulators = 8;
using Wide [[gnu::vector_size(4 * wide)]] = float;

// The processor decides at start which of these to run.
#if defined(__x86_64__) && defined(__GLIBC__)
[[gnu::target_clones("avx512f", "fma", "default")]]
#endif
float multiply_add(std::int64_t times) {
  Wide x[accumulators] = {};
  const Wide a = x[0] + 0.5f;
  const Wide b = x[0] + 1;
  for (std::int64_t i = 0; i < times; ++i) {
    for (Wide& each : x) each = each * a + b;
  }
  for (const Wide& each : x) x[0] += each;
  return x[0][0];
}

#if defined(__x86_64__) && defined(__GLIBC__)
[[gnu::target_clones("avx512f", "fma", "default")]]
#endif
void triad(const float* x, const float* y, float* z, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) z[i] = x[i] * 0.5f + y[i];
}

/// The least seconds of one call of `f` among many, in which it is called `times` times.
template <class F>
double fastest(int times, F&& f) {
  double best = std::numeric_limits<double>::infinity();
  for (int attempt = 0; attempt < 20; ++attempt) {
    const double start = now();
    for (int i = 0; i < times; ++i) f();
    best = std::min(best, (now() - start) / times);
  }
  return best;
}

double bytes_per_second(std::int64_t count, int times) {
  const std::vector<float> x(static_cast<std::size_t>(count), 1);
  const std::vector<float> y = x;
  std::vector<float> z = x;
  const double seconds = fastest(times, [&] { triad(x.data(), y.data(), z.data(), count); });
  return 3 * sizeof(float) * static_cast<double>(count) / seconds;
}

}  // namespace

Limits measure_limits() {
  constexpr std::int64_t times = 100'000;
  volatile float sink = 0;
  const double seconds = fastest(10, [&] { sink = multiply_add(times); });
  return {2.0 * wide * accumulators * times / seconds, bytes_per_second(20'000, 200),
          bytes_per_second(10'000'000, 1)};
}

double least_seconds(const Model& model, const Limits& limits) {
  constexpr double cache_bytes = 1 << 20;
  Tape tape;
  const Var loss = model.record_loss(tape);
  std::vector<Var> parameters;
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    if (tape.is_parameter(node)) parameters.push_back(tape.var(tape.first_output(node)));
  }
  gradient(loss, parameters);
  double seconds = 0;
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    if (tape.is_leaf(node) || tape.operation(node).view) continue;
    const Cost cost = cost_of(NodeView(tape, node));
    const double rate =
        cost.bytes <= cache_bytes ? limits.cache_bytes_per_second : limits.memory_bytes_per_second;
    seconds += std::max(cost.flops / limits.flops_per_second, cost.bytes / rate);
  }
  return seconds;
}

}  // namespace palimpsest::benchmarks
