#include <cmath>
#include <limits>

#include "autodiff/gradient.h"
#include "autodiff/kernels/kernels.h"
#include "autodiff/number_text.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/fold.h"
#include "autodiff/operations/functions/exponential.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/unary.h"

namespace palimpsest {
namespace {

const ReduceAttributes& attributes_of(const Pullback& p) {
  return p.attributes().as<ReduceAttributes>();
}

/// The mean, computed from differences from one element. Stores how far its rounded value is below
/// it.
struct KeepingMean : Summing {
  double count;
  double* roundings;
  template <class T>
  void map(const T* x, const T* center, T* to, std::int64_t n) const {
    for (std::int64_t i = 0; i < n; ++i) to[i] = x[i] - center[i];
  }
  template <class T>
  void map_tile(T*, std::int64_t) const {}
  template <class T>
  T finish(Total<T> total, T center, std::int64_t result) const {
    const Total<T> mean = static_cast<Total<T>>(center) + total / count;
    const T rounded = static_cast<T>(mean);
    roundings[result] = mean - static_cast<Total<T>>(rounded);
    return rounded;
  }
};

/// The deviation from the rounded mean, corrected for the rounding.
struct SquaredDeviation : Summing {
  double count;
  double divisor;
  bool root;
  const double* roundings;
  template <class T>
  void map(const T* x, const T* center, T* to, std::int64_t n) const {
    for (std::int64_t i = 0; i < n; ++i) to[i] = (x[i] - center[i]) * (x[i] - center[i]);
  }
  template <class T>
  void map_tile(T*, std::int64_t) const {}
  template <class T>
  T finish(Total<T> total, T, std::int64_t result) const {
    Total<T> variance = (total - count * roundings[result] * roundings[result]) / divisor;
    if (variance < 0) variance = 0;  // but NaN stays NaN
    return static_cast<T>(root ? std::sqrt(variance) : variance);
  }
};

template <bool root>
void compute_deviation(const KernelCall& call) {
  fold_floating(call, [](const auto& folding) {
    const auto count = static_cast<double>(folding.reduction().rows());
    auto* roundings = reinterpret_cast<double*>(folding.own_workspace());
    folding.take_first();
    folding.run_centered(KeepingMean{{}, count, roundings});
    folding.run_centered(SquaredDeviation{{}, count, folding.number(), root, roundings});
  });
}

/// The workspace of the fold, and one number per result.
Bytes deviation_workspace(const NodeView& node, int threads) {
  return fold_workspace(node, threads) +
         node.output().shape.elements() * static_cast<Bytes>(sizeof(double));
}

/// The number that logsumexp subtracts: the largest element if it is finite, else 0.
struct FiniteMaximum : Extreme<true> {
  template <class T>
  T finish(Total<T> total, T) const {
    return std::isfinite(total) ? static_cast<T>(total) : T(0);
  }
};

struct SumOfExponentials : Summing {
  template <class T>
  void map(const T* x, const T* center, T* to, std::int64_t n) const {
    for (std::int64_t i = 0; i < n; ++i) to[i] = x[i] - center[i];
  }
  template <class T>
  void map_tile(T* x, std::int64_t n) const {
    const std::size_t exp = unary_index(functions::place_of<functions::Exp>);
    kernels().unary<T>()[exp](x, x, n, nullptr);
  }
  template <class T>
  T finish(Total<T> total, T center) const {
    return static_cast<T>(static_cast<Total<T>>(center) + std::log(total));
  }
};

/// Both reductions of adjacent groups of few short rows, one after the other in the cache.
template <class T>
void logsumexp_of_short_rows(const ReductionWalk& reduction, std::int64_t together, const T* x,
                             T* y) {
  const std::int64_t columns = reduction.columns();
  for_groups_together(reduction, together, [&](std::int64_t first, std::int64_t count) {
    alignas(64) T tile[most_short_elements];
    alignas(64) T center[fold_columns];
    alignas(64) Total<T> totals[fold_columns];
    const std::int64_t results = count * columns;
    gather_rows(x + reduction.group_offset(first), count, reduction.rows(), columns, tile);
    // In any order: the sign of a zero does not matter here.
    std::copy_n(tile, results, center);
    combine_rows<FiniteMaximum>(tile + results, reduction.rows() - 1, results, results, center);
    for (std::int64_t i = 0; i < results; ++i) center[i] = FiniteMaximum{}.finish<T>(center[i], {});
    const SumOfExponentials rule;
    fold_gathered<SumOfExponentials, T>(rule, reduction, tile, count, center, totals);
    T* const to = y + first * columns;
    for (std::int64_t i = 0; i < results; ++i) to[i] = rule.finish(totals[i], center[i]);
  });
}

void compute_logsumexp(const KernelCall& call) {
  fold_floating(call, [&]<class T>(const Folding<T>& folding) {
    const ReductionWalk& reduction = folding.reduction();
    if (const std::int64_t together = groups_together(reduction); together > 1) {
      logsumexp_of_short_rows(reduction, together, call.input().as<T>(), call.output().as<T>());
      return;
    }
    folding.run(FiniteMaximum{});
    folding.run_centered(SumOfExponentials{});
  });
}

Cost deviation_cost(const NodeView& node) { return fold_cost(node, 4, 2); }
Cost logsumexp_cost(const NodeView& node) { return fold_cost(node, 13, 2); }

/// x minus its mean, and minus the error from rounding that mean.
Var deviation(const Var& x, const AxisMask& mask) {
  Axes axes;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (mask[static_cast<std::size_t>(axis)]) axes.push_back(axis);
  }
  const Var rough = x - mean(x, axes, true);
  return rough - mean(rough, axes, true);
}

const Operation variance_operation{
    .name = "variance",
    .formula = "y = Σ (x - m)² / d, m = mean x, d = n - correction; x̄ = 2·ȳ·(x - m)/d",
    .summary = "variance over axes",
    .compute = compute_deviation<false>,
    .vjp =
        [](const Pullback& p) {
          const Var x = p.input();
          const ReduceAttributes attributes = attributes_of(p);
          const Var share = p.adjoint() * (2 / attributes.number);
          p.set(0, with_axes_kept(share, x, attributes.mask) * deviation(x, attributes.mask));
        },
    .cost = deviation_cost,
    .workspace = deviation_workspace,
};

const Operation standard_deviation_operation{
    .name = "standard_deviation",
    .formula = "y = √variance; x̄ = ȳ·(x - m)/(d·y), 0 where y = 0",
    .summary = "standard deviation over axes",
    .compute = compute_deviation<true>,
    .vjp =
        [](const Pullback& p) {
          const Var x = p.input();
          const ReduceAttributes attributes = attributes_of(p);
          const Var share = p.adjoint() * inverse_or_zero(p.output()) / attributes.number;
          p.set(0, with_axes_kept(share, x, attributes.mask) * deviation(x, attributes.mask));
        },
    .cost = deviation_cost,
    .workspace = deviation_workspace,
};

const Operation logsumexp_operation{
    .name = "logsumexp",
    .formula = "y = log Σ exp x, x̄ = ȳ·exp(x - y), 0 where y = -∞",
    .summary = "logarithm of the sum of exponentials over axes",
    .compute = compute_logsumexp,
    .vjp =
        [](const Pullback& p) {
          const Var x = p.input();
          const AxisMask mask = attributes_of(p).mask;
          // Where all elements are −∞, the derivative is 0, not exp(−∞ + ∞).
          const Var y = p.output();
          const Var finite = where(equal(y, -std::numeric_limits<double>::infinity()), 0, y);
          p.set(0, exp(x - with_axes_kept(finite, x, mask)) * with_axes_kept(p.adjoint(), x, mask));
        },
    .cost = logsumexp_cost,
    .workspace = fold_workspace,
};

Var record_deviation(const Operation& operation, const Var& x, const Axes& axes, double correction,
                     bool keep_axes, const Where& where) {
  require_floating(x, operation.name, where);
  const AxisMask mask = mask_of(axes, x.shape(), operation.name, where);
  const auto count = static_cast<double>(reduced_count(x.shape(), mask));
  if (!(correction >= 0 && correction < count)) {
    throw ArgumentError(operation.name,
                        "correction " + number_text(correction) + " with " +
                            std::to_string(static_cast<std::int64_t>(count)) +
                            " elements per result; give at least 0 and less than their number",
                        where);
  }
  return record_reduction(operation, x, {mask, count - correction}, keep_axes, x.dtype(), where);
}

}  // namespace

std::span<const Operation* const> moment_operations() {
  static const Operation* const family[] = {&variance_operation, &standard_deviation_operation,
                                            &logsumexp_operation};
  return family;
}

Var variance(const Var& x, const Axes& axes, double correction, bool keep_axes, Where where) {
  return record_deviation(variance_operation, x, axes, correction, keep_axes, where);
}

Var standard_deviation(const Var& x, const Axes& axes, double correction, bool keep_axes,
                       Where where) {
  return record_deviation(standard_deviation_operation, x, axes, correction, keep_axes, where);
}

Var logsumexp(const Var& x, const Axes& axes, bool keep_axes, Where where) {
  require_floating(x, "logsumexp", where);
  const AxisMask mask = mask_of(axes, x.shape(), "logsumexp", where);
  return record_reduction(logsumexp_operation, x, {mask}, keep_axes, x.dtype(), where);
}

}  // namespace palimpsest
