#include <cmath>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/fold.h"
#include "autodiff/operations/registry.h"

namespace palimpsest {
namespace {

/// Σ |x|ᵖ and its root.
template <class Map>
struct PowerSum : Summing {
  double p;
  template <class T>
  void map(const T* x, const T*, T* to, std::int64_t n) const {
    for (std::int64_t i = 0; i < n; ++i) to[i] = Map::value(x[i], static_cast<T>(p));
  }
  template <class T>
  void map_tile(T*, std::int64_t) const {}
  template <class T>
  T finish(Total<T> total, T) const {
    return static_cast<T>(Map::root(total, static_cast<Total<T>>(p)));
  }
};

struct Absolute {
  template <class T>
  static T value(T x, T) {
    return std::abs(x);
  }
  template <class T>
  static T root(T total, T) {
    return total;
  }
};

struct Square {
  template <class T>
  static T value(T x, T) {
    return x * x;
  }
  template <class T>
  static T root(T total, T) {
    return std::sqrt(total);
  }
};

struct Power {
  template <class T>
  static T value(T x, T p) {
    return std::pow(std::abs(x), p);
  }
  template <class T>
  static T root(T total, T p) {
    return std::pow(total, 1 / p);
  }
};

void compute(const KernelCall& call) {
  fold_floating(call, [](const auto& folding) {
    const double p = folding.number();
    if (p == 1)
      folding.run(PowerSum<Absolute>{{}, p});
    else if (p == 2)
      folding.run(PowerSum<Square>{{}, p});
    else
      folding.run(PowerSum<Power>{{}, p});
  });
}

Cost cost(const NodeView& node) {
  const double p = node.attributes().as<ReduceAttributes>().number;
  return fold_cost(node, p == 1 || p == 2 ? 2 : 22, 1);
}

void pull_back(const Pullback& p) {
  const Var x = p.input();
  const auto [mask, order] = p.attributes().as<ReduceAttributes>();
  if (order == 1) {
    p.set(0, sign(x) * with_axes_kept(p.adjoint(), x, mask));
    return;
  }
  const Var inverse = inverse_or_zero(p.output());
  if (order == 2) {
    p.set(0, x * with_axes_kept(p.adjoint() * inverse, x, mask));
    return;
  }
  const Var share = p.adjoint() * pow(inverse, order - 1);
  p.set(0, sign(x) * pow(abs(x), order - 1) * with_axes_kept(share, x, mask));
}

const Operation norm_operation{
    .name = "norm",
    .formula = "y = (Σ |x|ᵖ)^(1/p), x̄ = ȳ·sign(x)·(|x|/y)^(p-1), 0 where y = 0",
    .summary = "p-norm over axes",
    .compute = compute,
    .vjp = pull_back,
    .cost = cost,
    .workspace = fold_workspace,
};

const Operation* const family[] = {&norm_operation};

}  // namespace

std::span<const Operation* const> norm_operations() { return family; }

Var norm(const Var& x, double p, const Axes& axes, bool keep_axes, Where where) {
  require_floating(x, "norm", where);
  if (!(p >= 1)) {
    throw ArgumentError("norm", "p = " + std::to_string(p) + " does not make a norm; give p >= 1",
                        where);
  }
  const AxisMask mask = mask_of(axes, x.shape(), "norm", where);
  if (std::isinf(p)) return max(abs(x, where), axes, keep_axes, where);
  return record_reduction(norm_operation, x, {mask, p}, keep_axes, x.dtype(), where);
}

}  // namespace palimpsest
