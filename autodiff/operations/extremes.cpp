#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "autodiff/gradient.h"
#include "autodiff/operations/fold.h"
#include "autodiff/operations/index.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/registry.h"

namespace palimpsest {
namespace {

template <bool largest>
struct Selecting : Extreme<largest> {
  template <class T>
  T finish(Total<T> total, T) const {
    if constexpr (std::is_floating_point_v<T>) {
      // The sign of a NaN that `combine` returns may be that of another element.
      if (total != total) return std::numeric_limits<T>::quiet_NaN();
    }
    return static_cast<T>(total);
  }
};

/// Whether `x` is the extreme `wanted`, which is NaN if any element is.
template <class T>
bool is_wanted(T x, T wanted) {
  return x == wanted || (wanted != wanted && x != x);
}

/// Position of the first of adjacent elements that is `wanted`; `n` if none is.
template <class T>
std::int64_t find_first(const T* x, std::int64_t n, T wanted) {
  constexpr std::int64_t block = 64;
  // Compilers vectorize a loop without exit whose results are as wide as its elements.
  using Hits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  const auto any_in = [&](const T* from) {
    Hits hits = 0;
    if (wanted != wanted) {
      for (std::int64_t i = 0; i < block; ++i) hits |= from[i] != from[i] ? Hits{1} : Hits{0};
    } else {
      for (std::int64_t i = 0; i < block; ++i) hits |= from[i] == wanted ? Hits{1} : Hits{0};
    }
    return hits != 0;
  };
  std::int64_t begin = 0;
  while (begin + block <= n && !any_in(x + begin)) begin += block;
  while (begin < n && !is_wanted(x[begin], wanted)) ++begin;
  return begin;
}

/// Likewise, of a line that was folded in segments, whose totals are `partials`. The total of the
/// first one has been replaced by the result.
template <class T>
std::int64_t find_first(const T* line, const FoldPlan& plan, std::int64_t n,
                        const Total<T>* partials, T wanted) {
  const std::int64_t first = find_first(line, plan.segment_rows, wanted);
  if (first < plan.segment_rows) return first;
  std::int64_t segment = 1;
  while (!is_wanted(static_cast<T>(partials[segment]), wanted)) ++segment;
  const std::int64_t begin = segment * plan.segment_rows;
  return begin + find_first(line + begin, std::min(plan.segment_rows, n - begin), wanted);
}

/// Finds the first row that contains each result's element. `partials` are the totals of `fold`'s
/// segments.
template <class T>
void find_rows(const ReductionWalk& reduction, const T* x, const T* found, const Total<T>* partials,
               std::int64_t* rows) {
  const auto plan = FoldPlan::of<T>(reduction);
  const std::int64_t columns = reduction.columns();
  const std::int64_t count = reduction.rows();
  const double cost = static_cast<double>(count) * static_cast<double>(plan.width);
  const bool are_lines = columns == 1 && reduction.run() == count;
  const bool is_segmented = are_lines && plan.segments > 1;
  constexpr std::int64_t few = 16;
  if (are_lines && count < few) {
    parallel_chunks(plan.items, grain_for(cost), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t group = begin; group < end; ++group) {
        const T* line = x + group * count;
        std::int64_t first = count - 1;
        for (std::int64_t i = count - 1; i-- > 0;) {
          first = is_wanted(line[i], found[group]) ? i : first;  // without a branch
        }
        rows[group] = first;
      }
    });
    return;
  }
  parallel_chunks(plan.items, grain_for(cost), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t first = item % plan.tiles * plan.width;
      const std::int64_t result = item / plan.tiles * columns + first;
      const std::int64_t width = std::min(plan.width, columns - first);
      const T* from = x + reduction.group_offset(item / plan.tiles) + first;
      if (is_segmented) {
        rows[result] =
            find_first(from, plan, count, partials + item * plan.segments, found[result]);
        continue;
      }
      std::fill_n(rows + result, width, -1);
      std::int64_t missing = width;
      for (std::int64_t row = 0; missing > 0; row += reduction.run()) {
        const T* line = from + reduction.row_offset(row);
        if (columns == 1) {
          const std::int64_t i = find_first(line, reduction.run(), found[result]);
          if (i < reduction.run()) {
            rows[result] = row + i;
            missing = 0;
          }
          continue;
        }
        for (std::int64_t i = 0; i < reduction.run() && missing > 0; ++i, line += columns) {
          for (std::int64_t c = 0; c < width; ++c) {
            const T wanted = found[result + c];
            if (is_wanted(line[c], wanted) && rows[result + c] < 0) {
              rows[result + c] = row + i;
              --missing;
            }
          }
        }
      }
    }
  });
}

template <bool largest>
void compute_extreme(const KernelCall& call) {
  const ReductionWalk reduction(call.input().shape(), call.attributes.as<ReduceAttributes>().mask);
  const auto run = [&]<class T>(T) {
    const T* x = call.input().as<T>();
    T* y = call.output(0).as<T>();
    fold<Selecting<largest>, T>({}, reduction, x, nullptr, y, call.workspace);
    find_rows(reduction, x, y, reinterpret_cast<const Total<T>*>(call.workspace.data()),
              call.output(1).as<std::int64_t>());
  };
  const DType dtype = call.input().dtype();
  is_narrow_integer(dtype) ? visit_narrow_integer(dtype, run) : visit_numeric(dtype, run);
}

/// Only the elements found receive an adjoint, so x is not needed.
void pull_back_extreme(const Pullback& p) {
  const Var x = p.input();
  const AxisMask mask = p.attributes().as<ReduceAttributes>().mask;
  const std::int64_t count = reduced_count(x.shape(), mask);
  const auto as_row = [&](const Var& result) {
    return merge_axes(with_axes_kept(result, x, mask), mask);
  };
  const Var merged = scatter_add(as_row(p.adjoint()), 1, as_row(p.output(1)), count);
  p.set(0, unmerge_axes(merged, x.shape(), mask));
}

Cost extreme_cost(const NodeView& node) {
  const auto elements = static_cast<double>(node.input(0).shape.elements());
  return {2 * elements, 2 * static_cast<double>(node.input(0).bytes())};
}

const Operation max_operation{
    .name = "max",
    .formula = "y = max x, x̄ = ȳ at the first maximum",
    .summary = "largest element and its position, over axes",
    .compute = compute_extreme<true>,
    .vjp = pull_back_extreme,
    .cost = extreme_cost,
    .workspace = fold_workspace,
    .mixed = MixedPrecision::follows,
};

const Operation min_operation{
    .name = "min",
    .formula = "y = min x, x̄ = ȳ at the first minimum",
    .summary = "smallest element and its position, over axes",
    .compute = compute_extreme<false>,
    .vjp = pull_back_extreme,
    .cost = extreme_cost,
    .workspace = fold_workspace,
    .mixed = MixedPrecision::follows,
};

/// `name` is that of the function that the user called.
Var record(const Operation& operation, const char* name, const Var& x, const Axes& axes,
           bool keep_axes, const Where& where) {
  require_value(x, name, where);
  const Shape shape = x.shape();
  if (x.dtype() == DType::boolean) {
    throw DTypeError(name, "takes numbers, not " + to_string(x.type()) + "; use any or all", where);
  }
  const AxisMask mask = mask_of(axes, shape, name, where);
  if (reduced_count(shape, mask) == 0) {
    throw ShapeError(name,
                     "shape " + to_string(shape) +
                         " has no elements to choose from; check for empty tensors first",
                     where);
  }
  const Shape result = reduced_shape(shape, mask, keep_axes);
  const ValueType types[] = {{result, x.dtype()}, {result, DType::i64}};
  return x.tape().record(operation, {&x, 1}, types, ReduceAttributes{mask}, where);
}

}  // namespace

std::span<const Operation* const> extreme_operations() {
  static const Operation* const family[] = {&max_operation, &min_operation};
  return family;
}

Var max(const Var& x, const Axes& axes, bool keep_axes, Where where) {
  return record(max_operation, "max", x, axes, keep_axes, where);
}

Var min(const Var& x, const Axes& axes, bool keep_axes, Where where) {
  return record(min_operation, "min", x, axes, keep_axes, where);
}

Var argmax(const Var& x, const Axes& axes, bool keep_axes, Where where) {
  return record(max_operation, "argmax", x, axes, keep_axes, where).output(1);
}

Var argmin(const Var& x, const Axes& axes, bool keep_axes, Where where) {
  return record(min_operation, "argmin", x, axes, keep_axes, where).output(1);
}

}  // namespace palimpsest
