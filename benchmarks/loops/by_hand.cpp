#include "benchmarks/loops/ring.h"
#include "checkpoint/chains/binomial.h"

namespace palimpsest::benchmarks::by_hand {

void step(const std::vector<double>& u, std::vector<double>& next) {
  constexpr double c = Ring::speed;
  constexpr double d = Ring::diffusion;
  const std::size_t n = u.size();
  const double* const x = u.data();
  double* __restrict__ const y = next.data();
  y[0] = x[0] - c * (x[0] - x[n - 1]) + d * (x[1] - 2 * x[0] + x[n - 1]);
  for (std::size_t i = 1; i + 1 < n; ++i) {
    y[i] = x[i] - c * (x[i] - x[i - 1]) + d * (x[i + 1] - 2 * x[i] + x[i - 1]);
  }
  y[n - 1] = x[n - 1] - c * (x[n - 1] - x[n - 2]) + d * (x[0] - 2 * x[n - 1] + x[n - 2]);
}

double adjoint_step(const std::vector<double>& u, const std::vector<double>& adjoint,
                    std::vector<double>& of_u) {
  constexpr double here = 1 - Ring::speed - 2 * Ring::diffusion;
  constexpr double left = Ring::speed + Ring::diffusion;
  constexpr double right = Ring::diffusion;
  const std::size_t n = u.size();
  const double* const x = u.data();
  const double* const a = adjoint.data();
  double* __restrict__ const b = of_u.data();
  b[0] = here * a[0] + left * a[1] + right * a[n - 1];
  for (std::size_t i = 1; i + 1 < n; ++i) {
    b[i] = here * a[i] + left * a[i + 1] + right * a[i - 1];
  }
  b[n - 1] = here * a[n - 1] + left * a[0] + right * a[n - 2];
  // Eight independent sums, so that no addition waits for the one before it.
  double sums[8] = {};
  std::size_t i = 1;
  for (; i + 8 <= n; i += 8) {
    for (std::size_t k = 0; k < 8; ++k) sums[k] += a[i + k] * (x[i + k] - x[i + k - 1]);
  }
  double sum = a[0] * (x[0] - x[n - 1]);
  for (; i < n; ++i) sum += a[i] * (x[i] - x[i - 1]);
  for (const double each : sums) sum += each;
  return -sum;
}

namespace {

std::vector<double> start() {
  const Tensor tensor = ring_start();
  const std::span<const double> data = tensor.data<double>();
  return {data.begin(), data.end()};
}

}  // namespace

double run(std::int64_t steps) {
  std::vector<double> u = start();
  std::vector<double> next(u.size());
  for (std::int64_t n = 0; n < steps; ++n) {
    step(u, next);
    u.swap(next);
  }
  double sum = 0;
  for (const double x : u) sum += x * x;
  return sum;
}

Gradient gradient(std::uint32_t steps, std::uint32_t snapshots) {
  using Kind = ChainAction::Kind;
  std::vector<double> u = start();
  std::vector<double> next(u.size());
  std::vector<std::vector<double>> held(snapshots);
  Gradient made{std::vector<double>(u.size())};
  std::uint32_t at = 0;
  const auto advance = [&](std::uint32_t to) {
    for (; at < to; ++at) {
      step(u, next);
      u.swap(next);
    }
  };
  BinomialSchedule schedule(steps, snapshots);
  while (const std::optional<ChainAction> action = schedule.next()) {
    if (action->kind == Kind::store) held[action->slot] = u;
    if (action->kind == Kind::restore) u = held[action->slot];
    if (action->kind == Kind::advance) advance(action->step);
    if (action->kind != Kind::advance) at = action->step;
    if (action->kind != Kind::reverse) continue;
    if (at + 1 == steps) {
      step(u, next);
      for (std::size_t i = 0; i < u.size(); ++i) made.start[i] = 2 * next[i];
    }
    made.c += adjoint_step(u, made.start, next);
    made.start.swap(next);
  }
  return made;
}

}  // namespace palimpsest::benchmarks::by_hand
