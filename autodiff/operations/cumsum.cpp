#include <algorithm>

#include "autodiff/gradient.h"
#include "autodiff/operations/fold.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/registry.h"

namespace palimpsest {
namespace {

struct CumsumAttributes {
  int axis;
  bool reverse;

  bool operator==(const CumsumAttributes&) const = default;
};

template <class T>
void compute_cumsum(const KernelCall& call) {
  const auto [axis, reverse] = call.attributes.as<CumsumAttributes>();
  const Shape& shape = call.input().shape();
  const std::int64_t n = shape[axis];
  const std::int64_t columns = strides_of(shape)[static_cast<std::size_t>(axis)];
  const std::int64_t tiles = (columns + fold_columns - 1) / fold_columns;
  const std::int64_t items = n == 0 || columns == 0 ? 0 : shape.elements() / (n * columns) * tiles;
  const std::int64_t step = reverse ? -columns : columns;
  const auto cost = static_cast<double>(n * std::min(columns, fold_columns));
  parallel_chunks(items, grain_for(cost), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t first = item % tiles * fold_columns;
      const std::int64_t width = std::min(fold_columns, columns - first);
      std::int64_t at = item / tiles * n * columns + first + (reverse ? (n - 1) * columns : 0);
      Total<T> totals[fold_columns];
      std::fill_n(totals, width, Total<T>{});
      for (std::int64_t row = 0; row < n; ++row, at += step) {
        const T* x = call.input().as<T>() + at;
        T* y = call.output().as<T>() + at;
        for (std::int64_t i = 0; i < width; ++i) {
          totals[i] = Summing::combine(totals[i], static_cast<Total<T>>(x[i]));
          y[i] = static_cast<T>(totals[i]);
        }
      }
    }
  });
}

const Operation cumsum_operation{
    .name = "cumsum",
    .formula = "yᵢ = Σ over j ≤ i of xⱼ, x̄ᵢ = Σ over j ≥ i of ȳⱼ",
    .summary = "cumulative sum along an axis, from either end",
    .compute =
        [](const KernelCall& call) {
          visit_numeric(call.input().dtype(), [&]<class T>(T) { compute_cumsum<T>(call); });
        },
    .vjp =
        [](const Pullback& p) {
          const auto [axis, reverse] = p.attributes().as<CumsumAttributes>();
          p.set(0, cumsum(p.adjoint(), axis, !reverse));
        },
};

}  // namespace

std::span<const Operation* const> cumsum_operations() {
  static const Operation* const family[] = {&cumsum_operation};
  return family;
}

Var cumsum(const Var& x, int axis, bool reverse, Where where) {
  require_value(x, "cumsum", where);
  if (x.dtype() == DType::boolean || is_narrow_integer(x.dtype())) {
    return cumsum(cast(x, DType::i64, where), axis, reverse, where);
  }
  const ValueType type = x.type();
  const int wrapped = type.shape.wrap(axis, "cumsum", where);
  return x.tape().record(cumsum_operation, {&x, 1}, {&type, 1}, CumsumAttributes{wrapped, reverse},
                         where);
}

}  // namespace palimpsest
