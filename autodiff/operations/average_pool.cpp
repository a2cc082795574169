#include "autodiff/gradient.h"

#include <algorithm>

#include "autodiff/operations/image.h"
#include "autodiff/operations/pool_windows.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/registry.h"

namespace palimpsest {
namespace {

template <class T>
T count_of(const PoolSpan& i, const PoolSpan& j, const PoolSpan& k) {
  // With padding on three axes, the product may exceed 64 bits.
  return static_cast<T>(static_cast<double>(i.count) * static_cast<double>(j.count) *
                        static_cast<double>(k.count));
}

void compute_average_pool(const KernelCall& call) {
  const auto& pool = call.attributes.as<PoolAttributes>();
  visit_floating(call.output().dtype(), [&]<class T>(T) {
    for_pool_planes(pool, call.output(), [&](const PoolWindows& windows, std::int64_t plane) {
      const T* x = call.input().as<T>() + plane * pool.input_size();
      T* y = call.output().as<T>() + plane * pool.output_size();
      windows.for_windows(
          [&](std::int64_t position, const PoolSpan& i, const PoolSpan& j, const PoolSpan& k) {
            T total(0);
            windows.for_rows(i, j, k, [&](std::int64_t begin, std::int64_t end) {
              for (std::int64_t at = begin; at < end; ++at) total += x[at];
            });
            y[position] = total / count_of<T>(i, j, k);
          });
    });
  });
}

void compute_adjoint(const KernelCall& call) {
  const auto& pool = call.attributes.as<PoolAttributes>();
  visit_floating(call.output().dtype(), [&]<class T>(T) {
    for_pool_planes(pool, call.output(), [&](const PoolWindows& windows, std::int64_t plane) {
      const T* y = call.input().as<T>() + plane * pool.output_size();
      T* x = call.output().as<T>() + plane * pool.input_size();
      std::fill_n(x, pool.input_size(), T(0));
      windows.for_windows(
          [&](std::int64_t position, const PoolSpan& i, const PoolSpan& j, const PoolSpan& k) {
            const T share = y[position] / count_of<T>(i, j, k);
            windows.for_rows(i, j, k, [&](std::int64_t begin, std::int64_t end) {
              for (std::int64_t at = begin; at < end; ++at) x[at] += share;
            });
          });
    });
  });
}

extern const Operation average_pool_operation;

const Operation average_pool_adjoint_operation{
    .name = "average_pool_adjoint",
    .formula = "x = Σ y(q)/count over the windows q of an element; ȳ = average_pool(x̄)",
    .summary = "adjoint of average_pool",
    .compute = compute_adjoint,
    .vjp =
        [](const Pullback& p) {
          const auto pool = p.attributes().as<PoolAttributes>();
          p.set(0,
                record_pool(average_pool_operation, p.adjoint(), pool, Channels::first, p.where()));
        },
    .cost = pool_cost,
    .mixed = MixedPrecision::follows,
};

const Operation average_pool_operation{
    .name = "average_pool",
    .formula = "y(q) = Σ x/count over window q; x̄ = Σ ȳ(q)/count over the windows of an element",
    .summary = "mean of each window; plain or adaptive",
    .compute = compute_average_pool,
    .vjp =
        [](const Pullback& p) {
          const auto pool = p.attributes().as<PoolAttributes>();
          p.set(0, record_pool(average_pool_adjoint_operation, {p.adjoint()}, p.input().shape(),
                               pool, p.where()));
        },
    .cost = pool_cost,
    .mixed = MixedPrecision::follows,
};

}  // namespace

std::span<const Operation* const> average_pool_operations() {
  static const Operation* const family[] = {&average_pool_operation,
                                            &average_pool_adjoint_operation};
  return family;
}

Var average_pool(const Var& x, const PerAxis& kernel, const AveragePoolOptions& options,
                 Where where) {
  PoolAttributes pool = kernel_windows("average_pool", x, kernel,
                                       {.stride = options.stride,
                                        .padding = options.padding,
                                        .ceil_mode = options.ceil_mode,
                                        .channels = options.channels},
                                       where);
  pool.include_padding = options.count_include_pad;
  return record_pool(average_pool_operation, x, pool, options.channels, where);
}

Var adaptive_average_pool(const Var& x, const PerAxis& sizes, Channels channels, Where where) {
  return record_pool(average_pool_operation, x,
                     adaptive_windows("adaptive_average_pool", x, sizes, channels, where), channels,
                     where);
}

Var global_average_pool(const Var& x, Channels channels, Where where) {
  require_position(channels, "global_average_pool", where);
  const int first = channels == Channels::first ? 2 : 1;
  Axes axes;
  for (int axis = 0; axis < spatial_axes("global_average_pool", x, where); ++axis) {
    axes.push_back(axis + first);
  }
  return mean(x, axes, true, where);
}

}  // namespace palimpsest
