#include "autodiff/operations/reduce.h"

#include <algorithm>
#include <array>
#include <utility>

#include "autodiff/gradient.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/shape.h"
#include "autodiff/parallel.h"

namespace palimpsest {
namespace {

using Mask = std::array<bool, max_rank>;

Mask mask_of(const Axes& axes, const Shape& shape, const char* operation, const Where& where) {
  Mask mask{};
  for (const int axis : axes) {
    const int wrapped = axis < 0 ? axis + shape.rank() : axis;
    if (wrapped < 0 || wrapped >= shape.rank()) {
      throw ShapeError(
          operation,
          "axis " + std::to_string(axis) + " is out of range for shape " + to_string(shape), where);
    }
    if (std::exchange(mask[static_cast<std::size_t>(wrapped)], true)) {
      throw ShapeError(operation, "axis " + std::to_string(axis) + " is named twice", where);
    }
  }
  if (axes.empty()) std::fill_n(mask.begin(), shape.rank(), true);
  return mask;
}

/// `shape` with the masked axes of size 1.
Shape kept_shape(const Shape& shape, const Mask& mask) {
  Shape kept = shape;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (mask[static_cast<std::size_t>(axis)]) kept[axis] = 1;
  }
  return kept;
}

/// The sum of n numbers a stride apart, in halves so that rounding grows with log n only.
template <class T>
T pairwise_sum(const T* x, std::int64_t n, std::int64_t stride) {
  if (n <= 128) {
    T total{};
    for (std::int64_t i = 0; i < n; ++i) total += x[i * stride];
    return total;
  }
  const std::int64_t half = n / 2;
  return pairwise_sum(x, half, stride) + pairwise_sum(x + half * stride, n - half, stride);
}

struct SumAttributes {
  Mask mask;
};

template <class T>
void compute_sum(const KernelCall& call) {
  const Operand& x = call.input();
  const Operand& y = call.output();
  const Mask& mask = call.attributes.as<SumAttributes>().mask;
  // Axes split into (kept…, reduced…) by strides; the innermost reduced axis runs fastest.
  const Shape& shape = x.shape();
  const auto strides = strides_of(shape);
  std::vector<std::pair<std::int64_t, std::int64_t>> kept, reduced;  // size, stride
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    auto& list = mask[at] ? reduced : kept;
    if (shape[axis] == 1) continue;
    if (!list.empty() && list.back().second == strides[at] * shape[axis]) {
      list.back() = {list.back().first * shape[axis], strides[at]};
    } else {
      list.emplace_back(shape[axis], strides[at]);
    }
  }
  std::int64_t count = 1;
  for (const auto& [size, stride] : reduced) count *= size;
  const auto inner = reduced.empty() ? std::pair<std::int64_t, std::int64_t>(1, 1) : reduced.back();
  const T* data = x.as<T>();
  T* out = y.as<T>();
  const double cost = static_cast<double>(count);
  parallel_chunks(y.elements(), grain_for(cost), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t o = begin; o < end; ++o) {
      std::int64_t base = 0;
      std::int64_t rest = o;
      for (std::size_t i = kept.size(); i-- > 0;) {
        base += rest % kept[i].first * kept[i].second;
        rest /= kept[i].first;
      }
      T total{};
      for (std::int64_t r = 0; inner.first > 0 && r < count / inner.first; ++r) {
        std::int64_t offset = base;
        std::int64_t index = r;
        for (std::size_t i = reduced.empty() ? 0 : reduced.size() - 1; i-- > 0;) {
          offset += index % reduced[i].first * reduced[i].second;
          index /= reduced[i].first;
        }
        total += pairwise_sum(data + offset, inner.first, inner.second);
      }
      out[o] = total;
    }
  });
}

const Operation sum_operation{
    .name = "sum",
    .formula = "y = Σ x, x̄ = ȳ repeated along the reduced axes",
    .summary = "sum over axes",
    .compute =
        [](const KernelCall& call) {
          visit_numeric(call.input().dtype(), [&]<class T>(T) { compute_sum<T>(call); });
        },
    .vjp =
        [](const Pullback& p) {
          const Shape shape = p.input().shape();
          const Mask& mask = p.attributes().as<SumAttributes>().mask;
          p.set(0, broadcast_to(reshape(p.adjoint(), kept_shape(shape, mask)), shape));
        },
};

const Operation* const family[] = {&sum_operation};

}  // namespace

std::span<const Operation* const> reduce_operations() { return family; }

Var sum(const Var& x, const Axes& axes, bool keep_axes, Where where) {
  const Shape shape = x.shape();
  const Mask mask = mask_of(axes, shape, "sum", where);
  if (x.dtype() == DType::boolean) {
    throw DTypeError("sum", "takes numbers, not bool; cast it first", where);
  }
  Shape result;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (!mask[static_cast<std::size_t>(axis)])
      result.push_back(shape[axis]);
    else if (keep_axes)
      result.push_back(1);
  }
  const ValueType type{result, x.dtype()};
  return x.tape().record(sum_operation, {&x, 1}, {&type, 1}, SumAttributes{mask}, where);
}

}  // namespace palimpsest
