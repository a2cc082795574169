#include <algorithm>

#include "autodiff/gradient.h"
#include "autodiff/kernels/kernels.h"
#include "autodiff/operations/image.h"
#include "autodiff/operations/pool_windows.h"
#include "autodiff/operations/registry.h"

namespace palimpsest {
namespace {

void compute_max_pool(const KernelCall& call) {
  const auto& pool = call.attributes.as<PoolAttributes>();
  visit_floating(call.output().dtype(), [&]<class T>(T) {
    for_pool_planes(pool, call.output(), [&](const PoolWindows& windows, std::int64_t plane) {
      const T* x = call.input().as<T>() + plane * pool.input_size();
      T* y = call.output().as<T>() + plane * pool.output_size();
      windows.for_runs(x, [&](std::int64_t position, const WindowRun<T>& run) {
        kernels().pool<T>().maxima(run, y + position, nullptr);
      });
    });
  });
}

/// Calls f(position, place) for every window of x; `place` is its first largest element in x.
template <class T, class F>
void for_maxima(const PoolWindows& windows, const T* x, F f) {
  T largest[PoolWindows::longest_run];
  std::int64_t places[PoolWindows::longest_run];
  windows.for_runs(x, [&](std::int64_t position, const WindowRun<T>& run) {
    kernels().pool<T>().maxima(run, largest, places);
    for (std::int64_t k = 0; k < run.windows; ++k) f(position + k, places[k]);
  });
}

/// Inputs x and z: y = z at the positions of the maxima of x.
void pick(const KernelCall& call) {
  const auto& pool = call.attributes.as<PoolAttributes>();
  visit_floating(call.output().dtype(), [&]<class T>(T) {
    for_pool_planes(pool, call.output(), [&](const PoolWindows& windows, std::int64_t plane) {
      const T* x = call.input(0).as<T>() + plane * pool.input_size();
      const T* z = call.input(1).as<T>() + plane * pool.input_size();
      T* y = call.output().as<T>() + plane * pool.output_size();
      for_maxima(windows, x,
                 [&](std::int64_t position, std::int64_t place) { y[position] = z[place]; });
    });
  });
}

/// Inputs x and ȳ.
void compute_max_pool_adjoint(const KernelCall& call) {
  const auto& pool = call.attributes.as<PoolAttributes>();
  visit_floating(call.output().dtype(), [&]<class T>(T) {
    for_pool_planes(pool, call.output(), [&](const PoolWindows& windows, std::int64_t plane) {
      const T* x = call.input(0).as<T>() + plane * pool.input_size();
      const T* y = call.input(1).as<T>() + plane * pool.output_size();
      T* to = call.output().as<T>() + plane * pool.input_size();
      std::fill_n(to, pool.input_size(), T(0));
      for_maxima(windows, x,
                 [&](std::int64_t position, std::int64_t place) { to[place] += y[position]; });
      call.finished(plane * pool.input_size(), pool.input_size());
    });
  });
}

// x only selects positions, so derivatives flow through the other operand only.
extern const Operation max_pool_pick_operation;

const Operation max_pool_adjoint_operation{
    .name = "max_pool_adjoint",
    .formula = "z(argmax of window q of x) += y(q); ȳ = z̄ picked where x is largest, x̄ = 0",
    .summary = "adjoint of max_pool",
    .compute = compute_max_pool_adjoint,
    .vjp =
        [](const Pullback& p) {
          const auto pool = p.attributes().as<PoolAttributes>();
          if (!p.wants(1)) return;
          p.set(1, record_pool(max_pool_pick_operation, {p.input(0), p.adjoint()},
                               p.input(1).shape(), pool, p.where()));
        },
    .cost = pool_cost,
    .mixed = MixedPrecision::follows,
    .fuses_epilogues = true,
};

void pull_back_pick(const Pullback& p, std::size_t picked) {
  const auto pool = p.attributes().as<PoolAttributes>();
  if (!p.wants(picked)) return;
  p.set(picked, record_pool(max_pool_adjoint_operation, {p.input(0), p.adjoint()},
                            p.input(0).shape(), pool, p.where()));
}

const Operation max_pool_pick_operation{
    .name = "max_pool_pick",
    .formula = "y(q) = z(argmax of window q of x); z̄ = ȳ where x is largest, x̄ = 0",
    .summary = "elements at the positions that max_pool selects",
    .compute = pick,
    .vjp = [](const Pullback& p) { pull_back_pick(p, 1); },
    .cost = pool_cost,
    .mixed = MixedPrecision::follows,
};

const Operation max_pool_operation{
    .name = "max_pool",
    .formula = "y(q) = max of window q of x; x̄ = ȳ at the first maximum",
    .summary = "largest element of each window; plain, adaptive or global",
    .compute = compute_max_pool,
    .vjp = [](const Pullback& p) { pull_back_pick(p, 0); },
    .cost = pool_cost,
    .mixed = MixedPrecision::follows,
};

}  // namespace

std::span<const Operation* const> max_pool_operations() {
  static const Operation* const family[] = {&max_pool_operation, &max_pool_pick_operation,
                                            &max_pool_adjoint_operation};
  return family;
}

Var max_pool(const Var& x, const PerAxis& kernel, const PoolOptions& options, Where where) {
  return record_pool(max_pool_operation, x, kernel_windows("max_pool", x, kernel, options, where),
                     options.channels, where);
}

Var adaptive_max_pool(const Var& x, const PerAxis& sizes, Channels channels, Where where) {
  return record_pool(max_pool_operation, x,
                     adaptive_windows("adaptive_max_pool", x, sizes, channels, where), channels,
                     where);
}

Var global_max_pool(const Var& x, Channels channels, Where where) {
  return record_pool(max_pool_operation, x,
                     adaptive_windows("global_max_pool", x, 1, channels, where), channels, where);
}

}  // namespace palimpsest
