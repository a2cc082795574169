#include "autodiff/operations/reduce.h"

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/fold.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/shape.h"

namespace palimpsest {
namespace {

struct Sum : Summing {
  static Sum of(const Attributes&) { return {}; }
  template <class T>
  T finish(Total<T> total, T) const {
    return static_cast<T>(total);
  }
};

struct Product {
  static Product of(const Attributes&) { return {}; }
  template <class V>
  static V combine(V a, V b) {
    if constexpr (std::is_integral_v<V>) {
      // unsigned 64 bits: 32-bit factors would otherwise be promoted to a signed product
      return static_cast<V>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    } else {
      return a * b;
    }
  }
  template <class V>
  static V identity() {
    return V(1);
  }
  template <class T>
  T finish(Total<T> total, T) const {
    return static_cast<T>(total);
  }
};

template <bool every>
struct Truth {
  static Truth of(const Attributes&) { return {}; }
  template <class V>
  static V combine(V a, V b) {
    return every ? (a & b) != 0 : (a | b) != 0;
  }
  template <class V>
  static V identity() {
    return every;
  }
  bool finish(bool total, bool) const { return total; }
};

/// The total of narrow elements is i64.
template <class Rule>
void compute_numbers(const KernelCall& call) {
  const Operand& x = call.input();
  if (!is_narrow_or_bool(x.dtype())) {
    fold_numeric(call, [](const auto& folding) { folding.run(Rule{}); });
    return;
  }
  const ReductionWalk reduction(x.shape(), call.attributes.as<ReduceAttributes>().mask);
  visit_narrow(x.dtype(), [&]<class From>(From) {
    auto* const y = call.output().as<std::int64_t>();
    fold<Rule, std::int64_t>({}, reduction, x.as<From>(), nullptr, y, call.workspace);
  });
}

/// `kernel(T{}, From{})` for elements of type `From`, which are folded as T.
template <class F>
FoldKernel kernel_for(DType dtype, F kernel) {
  if (!is_narrow_or_bool(dtype)) {
    return visit_numeric(compute_dtype(dtype), [&]<class T>(T x) { return kernel(x, x); });
  }
  return visit_narrow(dtype, [&]<class From>(From x) { return kernel(std::int64_t{}, x); });
}

/// Whether streaming pays. It does not for few short rows, few rows of several columns, and columns
/// whose sums would fill a cache.
bool pays_to_stream(const ReductionWalk& reduction) {
  const std::int64_t rows = reduction.rows();
  const std::int64_t columns = reduction.columns();
  constexpr std::int64_t few_groups = 8;
  constexpr std::int64_t few_rows = 16;
  constexpr std::int64_t most_columns = 2048;
  const bool is_long = rows * columns >= fold_lanes;
  const bool pays = columns == 1 ? is_long || reduction.groups() > few_groups
                                 : is_long && rows >= few_rows && columns <= most_columns;
  return reduction.run() == rows && pays;
}

/// Null where that would not pay, and for short rows without code of their own.
template <class Rule, class T, class From>
FoldKernel stream_kernel(const ReductionWalk& reduction) {
  const std::int64_t rows = reduction.rows();
  const std::int64_t columns = reduction.columns();
  if (!pays_to_stream(reduction)) return {};
  const bool is_direct = std::is_same_v<T, From> && folds_directly<T>(rows);
  if (rows * columns < fold_lanes && !is_direct) return {};
  return piece_fold_kernel<Rule, T, From>(rows, columns,
                                          FoldPlan::of<From>(reduction).segment_rows);
}

ReductionWalk walk_of(const NodeView& node) {
  return {node.input(0).shape, node.attributes().as<ReduceAttributes>().mask};
}

template <class Rule>
FoldKernel fold_kernel(const NodeView& node) {
  return kernel_for(node.input(0).dtype, [&]<class T, class From>(T, From) {
    return stream_kernel<Rule, T, From>(walk_of(node));
  });
}

template <bool every>
FoldKernel truth_kernel(const NodeView& node) {
  return stream_kernel<Truth<every>, bool, bool>(walk_of(node));
}

Cost one_pass(const NodeView& node) { return fold_cost(node, 1, 1); }

const AxisMask& mask_of(const Pullback& p) { return p.attributes().as<ReduceAttributes>().mask; }

const Operation sum_operation{
    .name = "sum",
    .formula = "y = Σ x, x̄ = ȳ broadcast along the reduced axes",
    .summary = "sum over axes",
    .compute = compute_numbers<Sum>,
    .vjp =
        [](const Pullback& p) {
          const Var x = p.input();
          p.set(0, broadcast_to(with_axes_kept(p.adjoint(), x, mask_of(p)), x.shape()));
        },
    .cost = one_pass,
    .workspace = fold_workspace,
    .fold = fold_kernel<Sum>,
};

const Operation mean_operation{
    .name = "mean",
    .formula = "y = Σ x / n, x̄ = ȳ/n broadcast along the reduced axes",
    .summary = "mean over axes",
    .compute =
        [](const KernelCall& call) {
          fold_floating(call,
                        [](const auto& folding) { folding.run(Averaging{{}, folding.number()}); });
        },
    .vjp =
        [](const Pullback& p) {
          const Var x = p.input();
          const auto attributes = p.attributes().as<ReduceAttributes>();
          const Var share = p.adjoint() / attributes.number;
          p.set(0, broadcast_to(with_axes_kept(share, x, attributes.mask), x.shape()));
        },
    .cost = one_pass,
    .workspace = fold_workspace,
    .fold = fold_kernel<Averaging>,
};

/// For each element along axis 1 of (before, n, after), the product of all others. Computes
/// products of pairs, of pairs of pairs and so on upwards. On the way down each element is
/// multiplied by its neighbour's product. There is no division, so zeros need no special case, and
/// everything is differentiable.
Var product_of_others(Var x) {
  const std::int64_t before = x.shape()[0];
  const std::int64_t after = x.shape()[2];
  std::vector<Var> pairs;
  std::vector<std::int64_t> sizes;
  while (x.shape()[1] > 1) {
    const std::int64_t n = x.shape()[1];
    sizes.push_back(n);
    if (n % 2 != 0) x = pad(x, {{0, 0}, {0, 1}, {0, 0}}, 1);
    pairs.push_back(reshape(x, {before, (n + 1) / 2, 2, after}));
    const std::vector<Var> halves = chunk(pairs.back(), 2, 2);
    x = reshape(halves[0] * halves[1], {before, (n + 1) / 2, after});
  }
  Var others = full_like(x, 1);
  for (std::size_t level = pairs.size(); level-- > 0;) {
    const std::int64_t n = sizes[level];
    const Var swapped = flip(pairs[level], {2});
    const Var both = n <= 2 ? swapped : swapped * unsqueeze(others, 2);
    others = slice(reshape(both, {before, (n + 1) / 2 * 2, after}), 1, {.stop = n});
  }
  return others;
}

const Operation prod_operation{
    .name = "prod",
    .formula = "y = Π x, x̄ᵢ = ȳ·Π over j ≠ i of xⱼ",
    .summary = "product over axes",
    .compute = compute_numbers<Product>,
    .vjp =
        [](const Pullback& p) {
          const Var x = p.input();
          const AxisMask mask = mask_of(p);
          const Var others = unmerge_axes(product_of_others(merge_axes(x, mask)), x.shape(), mask);
          p.set(0, others * with_axes_kept(p.adjoint(), x, mask));
        },
    .cost = one_pass,
    .workspace = fold_workspace,
    .fold = fold_kernel<Product>,
};

const Operation all_operation{
    .name = "all",
    .formula = "y = all x",
    .summary = "whether all elements are true, over axes",
    .compute = [](const KernelCall& call) { Folding<bool>(call).run(Truth<true>{}); },
    .cost = one_pass,
    .workspace = fold_workspace,
    .fold = truth_kernel<true>,
};

const Operation any_operation{
    .name = "any",
    .formula = "y = any x",
    .summary = "whether any element is true, over axes",
    .compute = [](const KernelCall& call) { Folding<bool>(call).run(Truth<false>{}); },
    .cost = one_pass,
    .workspace = fold_workspace,
    .fold = truth_kernel<false>,
};

Var numbers(const Operation& operation, const Var& x, const Axes& axes, bool keep_axes,
            const Where& where) {
  require_value(x, operation.name, where);
  const DType total = is_narrow_or_bool(x.dtype()) ? DType::i64 : x.dtype();
  const AxisMask mask = mask_of(axes, x.shape(), operation.name, where);
  return record_reduction(operation, x, {mask}, keep_axes, total, where);
}

Var truths(const Operation& operation, const Var& x, const Axes& axes, bool keep_axes,
           const Where& where) {
  require_value(x, operation.name, where);
  if (x.dtype() != DType::boolean) {
    throw DTypeError(operation.name,
                     "takes bool, not " + to_string(x.type()) + "; compare or cast it first",
                     where);
  }
  const AxisMask mask = mask_of(axes, x.shape(), operation.name, where);
  return record_reduction(operation, x, {mask}, keep_axes, DType::boolean, where);
}

}  // namespace

std::span<const Operation* const> reduce_operations() {
  static const Operation* const family[] = {&sum_operation, &mean_operation, &prod_operation,
                                            &all_operation, &any_operation};
  return family;
}

Var sum(const Var& x, const Axes& axes, bool keep_axes, Where where) {
  return numbers(sum_operation, x, axes, keep_axes, where);
}

Var mean(const Var& x, const Axes& axes, bool keep_axes, Where where) {
  require_floating(x, "mean", where);
  const AxisMask mask = mask_of(axes, x.shape(), "mean", where);
  const std::int64_t count = reduced_count(x.shape(), mask);
  if (count == 0) {
    throw ShapeError("mean",
                     "shape " + to_string(x.shape()) +
                         " has no elements to average; check for empty tensors first",
                     where);
  }
  return record_reduction(mean_operation, x, {mask, static_cast<double>(count)}, keep_axes,
                          x.dtype(), where);
}

Var prod(const Var& x, const Axes& axes, bool keep_axes, Where where) {
  return numbers(prod_operation, x, axes, keep_axes, where);
}

Var all(const Var& x, const Axes& axes, bool keep_axes, Where where) {
  return truths(all_operation, x, axes, keep_axes, where);
}

Var any(const Var& x, const Axes& axes, bool keep_axes, Where where) {
  return truths(any_operation, x, axes, keep_axes, where);
}

}  // namespace palimpsest
