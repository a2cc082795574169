#include <algorithm>
#include <cmath>

#include "autodiff/gradient.h"
#include "autodiff/number_text.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/fold.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/unary.h"

namespace palimpsest {
namespace {

/// (Σ |x|ᵖ)^(1/p). If `scaled`, computes it for x/center and multiplies by center.
template <class Map, bool scaled>
struct PowerSum : Summing {
  double p;
  template <class T>
  void map(const T* x, const T* center, T* to, std::int64_t n) const {
    for (std::int64_t i = 0; i < n; ++i) {
      to[i] = Map::value(scaled ? x[i] / center[i] : x[i], static_cast<T>(p));
    }
  }
  template <class T>
  void map_tile(T*, std::int64_t) const {}
  template <class T>
  T finish(Total<T> total, T center) const {
    const Total<T> root = Map::root(total, static_cast<Total<T>>(p));
    return static_cast<T>(scaled ? root * static_cast<Total<T>>(center) : root);
  }
};

/// True when powers of elements that matter for a norm `y` may be out of T's range.
template <class T>
bool is_doubtful(T y, double p) {
  return p * std::log2(static_cast<double>(y)) < (sizeof(T) == 4 ? -80 : -700) || std::isinf(y);
}

/// A scale that keeps powers in range. It is the largest |x| if the norm, passed as center, is
/// doubtful; else 1.
struct Scale : Extreme<true> {
  double p;
  template <class T>
  void map(const T* x, const T*, T* to, std::int64_t n) const {
    for (std::int64_t i = 0; i < n; ++i) to[i] = std::abs(x[i]);
  }
  template <class T>
  void map_tile(T*, std::int64_t) const {}
  template <class T>
  T finish(Total<T> total, T center) const {
    return is_doubtful(center, p) && total > 0 && std::isfinite(total) ? static_cast<T>(total)
                                                                       : T(1);
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

template <class Map, class F>
void sum_powers(const F& folding, double p) {
  folding.run(PowerSum<Map, false>{{}, p});
  const auto doubtful = [p](auto y) { return is_doubtful(y, p); };
  if (std::ranges::none_of(folding.results(), doubtful)) return;
  folding.run_centered(Scale{{}, p});
  folding.run_centered(PowerSum<Map, true>{{}, p});
}

void compute_norm(const KernelCall& call) {
  fold_floating(call, [](const auto& folding) {
    const double p = folding.number();
    if (p == 1)
      folding.run(PowerSum<Absolute, false>{{}, p});
    else if (p == 2)
      sum_powers<Square>(folding, p);
    else
      sum_powers<Power>(folding, p);
  });
}

Cost norm_cost(const NodeView& node) {
  const double p = node.attributes().as<ReduceAttributes>().number;
  return fold_cost(node, p == 1 || p == 2 ? 2 : 22, 1);
}

void pull_back_norm(const Pullback& p) {
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
  const Var share = abs(x) * with_axes_kept(inverse, x, mask);  // at most 1: its powers fit
  p.set(0, sign(x) * pow(share, order - 1) * with_axes_kept(p.adjoint(), x, mask));
}

const Operation norm_operation{
    .name = "norm",
    .formula = "y = (Σ |x|ᵖ)^(1/p), x̄ = ȳ·sign(x)·(|x|/y)^(p-1), 0 where y = 0",
    .summary = "p-norm over axes",
    .compute = compute_norm,
    .vjp = pull_back_norm,
    .cost = norm_cost,
    .workspace = fold_workspace,
};

}  // namespace

std::span<const Operation* const> norm_operations() {
  static const Operation* const family[] = {&norm_operation};
  return family;
}

Var norm(const Var& x, double p, const Axes& axes, bool keep_axes, Where where) {
  require_floating(x, "norm", where);
  if (!(p >= 1)) {
    throw ArgumentError("norm", "p = " + number_text(p) + " does not define a norm; give p >= 1",
                        where);
  }
  const AxisMask mask = mask_of(axes, x.shape(), "norm", where);
  if (std::isinf(p)) return max(abs(x, where), axes, keep_axes, where);
  return record_reduction(norm_operation, x, {mask, p}, keep_axes, x.dtype(), where);
}

}  // namespace palimpsest
