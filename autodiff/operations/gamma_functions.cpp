#include "autodiff/gradient.h"
#include "autodiff/kernels/special_functions.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/elementwise.h"
#include "autodiff/operations/functions/exponential.h"
#include "autodiff/operations/functions/special.h"
#include "autodiff/operations/incomplete_gamma.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/random_attributes.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"
#include "autodiff/parallel.h"
#include "autodiff/tape.h"

namespace palimpsest {
namespace {

/// y = f(a, b) in f64, rounded once.
void compute_by(const KernelCall& call, double (*f)(double a, double b)) {
  visit_floating(call.output().dtype(), [&]<class T>(T) {
    const T* const a = call.input(0).as<T>();
    const T* const b = call.input(1).as<T>();
    T* const y = call.output().as<T>();
    parallel_chunks(call.output().elements(), 64, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) y[i] = static_cast<T>(f(a[i], b[i]));
    });
  });
}

Cost cost_of_series(const NodeView& node) {
  return {300 * static_cast<double>(node.output().shape.elements()), bytes_moved(node)};
}

/// ∂P/∂x = xᵃ⁻¹·e⁻ˣ/Γ(a). ∂P/∂a is an integral that is computed for log x.
void pull_back_gamma_function(const Pullback& p, double sign) {
  const Where where = p.where();
  const DType dtype = p.input(0).dtype();
  const DType wide = compute_dtype(dtype);  // logarithms of 16 bits have too few digits
  const Var a = cast(p.input(0), wide);
  const Var x = cast(p.input(1), wide);
  const Var dy = cast(p.adjoint(), wide) * sign;
  if (p.wants(0)) {
    const Var inside = x > 0.0;
    const Var l = log(palimpsest::where(inside, x, 1, where), where);
    const Var density = exp(a * l - exp(l, where) - lgamma(a, where), where);
    const Var slope = density * record_gamma_slope(a, l, where);
    p.set(0, cast(-palimpsest::where(inside, dy * slope, 0, where), dtype));
  }
  if (!p.wants(1)) return;
  const Var density = exp(xlogy(a - 1.0, x, where) - x - lgamma(a, where), where);
  p.set(1, cast(dy * density, dtype));
}

const Operation igamma_operation{
    .name = "igamma",
    .formula = "y = P(a, x) = ∫₀ˣ tᵃ⁻¹·e⁻ᵗ dt/Γ(a), ∂y/∂x = xᵃ⁻¹·e⁻ˣ/Γ(a)",
    .summary = "regularized lower incomplete gamma function",
    .compute =
        [](const KernelCall& call) {
          compute_by(call, [](double a, double x) { return regularized_gamma(a, x, false); });
        },
    .vjp = [](const Pullback& p) { pull_back_gamma_function(p, 1); },
    .cost = cost_of_series,
};

const Operation igammac_operation{
    .name = "igammac",
    .formula = "y = Q(a, x) = 1 - P(a, x), ∂y/∂x = -xᵃ⁻¹·e⁻ˣ/Γ(a)",
    .summary = "regularized upper incomplete gamma function",
    .compute =
        [](const KernelCall& call) {
          compute_by(call, [](double a, double x) { return regularized_gamma(a, x, true); });
        },
    .vjp = [](const Pullback& p) { pull_back_gamma_function(p, -1); },
    .cost = cost_of_series,
};

const Operation zeta_operation{
    .name = "zeta",
    .formula = "y = Σ (k + q)⁻ˣ over k ≥ 0, ∂y/∂q = -x·ζ(x + 1, q)",
    .summary = "Hurwitz zeta function",
    .compute = [](const KernelCall& call) { compute_by(call, hurwitz_zeta); },
    .vjp =
        [](const Pullback& p) {
          if (p.wants(0)) {
            throw ArgumentError(
                "zeta", "has no derivative with respect to x; take its stop_gradient", p.where());
          }
          // x + 1 in 16 bits would lose the distance of x from 1.
          const DType dtype = p.input(1).dtype();
          const DType wide = compute_dtype(dtype);
          const Var x = cast(p.input(0), wide);
          const Var next = zeta(x + 1.0, cast(p.input(1), wide), p.where());
          p.set(1, cast(-(cast(p.adjoint(), wide) * x * next), dtype));
        },
    .cost = cost_of_series,
};

Var record_of_two(const Operation& operation, const Var& a, const Var& b, const Where& where) {
  const Var given[] = {a, b};
  Tape& tape = common_tape(given, operation.name, where);
  const ValueType type{broadcast(a.shape(), b.shape(), operation.name, where),
                       promote(a.dtype(), b.dtype())};
  const auto fitted = [&](const Var& v) {
    const Var same = cast(v, type.dtype, where);
    return v.shape() == type.shape ? same : broadcast_to(same, type.shape, where);
  };
  const Var left = fitted(a);
  const Var inputs[] = {left, fitted(b)};
  require_floating(left, operation.name, where);
  return tape.record(operation, inputs, {&type, 1}, {}, where);
}

}  // namespace

std::span<const Operation* const> gamma_function_operations() {
  static const Operation* const family[] = {&igamma_operation, &igammac_operation, &zeta_operation};
  return family;
}

Var igamma(const Var& a, const Var& x, Where where) {
  return record_of_two(igamma_operation, a, x, where);
}

Var igammac(const Var& a, const Var& x, Where where) {
  return record_of_two(igammac_operation, a, x, where);
}

Var zeta(const Var& x, const Var& q, Where where) {
  return record_of_two(zeta_operation, x, q, where);
}

}  // namespace palimpsest
