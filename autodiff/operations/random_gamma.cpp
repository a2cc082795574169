#include <algorithm>
#include <atomic>
#include <limits>

#include "autodiff/execute.h"
#include "autodiff/gradient.h"
#include "autodiff/number_text.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/exponential.h"
#include "autodiff/operations/incomplete_gamma.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/random.h"
#include "autodiff/operations/random_attributes.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/unary.h"
#include "autodiff/parallel.h"
#include "autodiff/philox.h"

namespace palimpsest {
namespace {

struct GammaDerivativeAttributes {
  GammaDerivative kind;
  int order;

  bool operator==(const GammaDerivativeAttributes&) const = default;
};

/// y = f(x, u) for every element, with u uniform in (0, 1). Throws `ArgumentError` for an element
/// that is not `allowed`.
template <class Allowed, class F>
void draw_by(const KernelCall& call, const char* operation, const char* requirement,
             Allowed allowed, F f) {
  const StreamAttributes& attributes = call.attributes.as<StreamAttributes>();
  constexpr std::int64_t part = 64;
  constexpr std::int64_t none_failed = std::numeric_limits<std::int64_t>::max();
  std::atomic<std::int64_t> failed = none_failed;
  visit_floating(call.output().dtype(), [&]<class T>(T) {
    const T* x = call.input().as<T>();
    parallel_chunks(call.output().elements(), part, [&](std::int64_t begin, std::int64_t end) {
      double u[part];
      fill_uniform(in_round(attributes.stream, call.round), u, end - begin, begin);
      for (std::int64_t i = begin; i < end; ++i) {
        const auto parameter = static_cast<double>(x[i]);
        if (allowed(parameter)) {
          const double drawn = f(parameter, std::max(u[i - begin], 0x1p-54));
          call.output().as<T>()[i] = static_cast<T>(drawn);
          continue;
        }
        std::int64_t first = failed;
        while (i < first && !failed.compare_exchange_weak(first, i)) {
        }
      }
    });
    if (failed == none_failed) return;
    throw ArgumentError(operation,
                        "element " + std::to_string(failed) + " of shape " +
                            to_string(call.input().shape()) + " is " +
                            number_text(static_cast<double>(x[failed])) + "; " + requirement,
                        attributes.where);
  });
}

Var record_gamma_derivative(GammaDerivative kind, int order, const Var& a, const Var& l,
                            const Where& where);

Cost per_element(const NodeView& node, double flops) {
  return {flops * static_cast<double>(node.output().shape.elements()), bytes_moved(node)};
}

const Operation log_gamma_operation{
    .name = "log_gamma_variate",
    .formula = "eˡ ~ Γ(a, 1), l = G⁻¹(a, u) for u ~ U(0, 1), ∂l/∂a = -(∂G/∂a)/(∂G/∂l)",
    .summary = "logarithms of gamma variates, by inversion of the distribution function G",
    .compute =
        [](const KernelCall& call) {
          draw_by(
              call, "gamma", "give positive concentrations",
              [](double a) { return a > 0 && a < std::numeric_limits<double>::infinity(); },
              log_gamma_quantile);
        },
    .vjp =
        [](const Pullback& p) {
          const Var slope = record_gamma_derivative(GammaDerivative::distribution, 1, p.input(),
                                                    p.output(), p.where());
          p.set(0, p.adjoint() * slope);
        },
    .cost = [](const NodeView& node) { return per_element(node, 1000); },
    .mixed = MixedPrecision::recorded,
    .random = true,
};

// For G with the density q by l, and D(k) = −∂ᵏG/∂aᵏ/q, R(k) = ∂ᵏq/∂aᵏ/q:
//   ∂D(k)/∂a = D(k+1) − D(k)·R(1)    ∂D(k)/∂l = −R(k) − D(k)·(a − eˡ)
//   ∂R(k)/∂a = R(k+1) − R(k)·R(1)    ∂R(k)/∂l = k·R(k−1), where R(0) = 1
void pull_back_gamma_derivative(const Pullback& p) {
  const auto [kind, order] = p.attributes().as<GammaDerivativeAttributes>();
  const Where where = p.where();
  const Var a = p.input(0);
  const Var l = p.input(1);
  const auto derivative = [&](GammaDerivative of, int k) {
    return record_gamma_derivative(of, k, a, l, where);
  };
  if (p.wants(0)) {
    const Var next = derivative(kind, order + 1);
    const Var by_density = p.output() * derivative(GammaDerivative::density, 1);
    p.set(0, p.adjoint() * (next - by_density));
  }
  if (!p.wants(1)) return;
  if (kind == GammaDerivative::distribution) {
    const Var density = derivative(GammaDerivative::density, order);
    p.set(1, p.adjoint() * (p.output() * (exp(l) - a) - density));
  } else if (order == 1) {
    p.set(1, p.adjoint());
  } else {
    p.set(1, p.adjoint() * derivative(kind, order - 1) * order);
  }
}

const Operation gamma_derivative_operation{
    .name = "gamma_derivative",
    .formula =
        "D(k) = -∂ᵏG/∂aᵏ/q or R(k) = ∂ᵏq/∂aᵏ/q; ∂D/∂a = D(k+1) - D·R(1), "
        "∂D/∂l = -R(k) - D·(a - eˡ), ∂R/∂a = R(k+1) - R·R(1), ∂R/∂l = k·R(k-1)",
    .summary = "derivatives of the distribution G and the density q of log_gamma_variate",
    .compute =
        [](const KernelCall& call) {
          const auto& [kind, order] = call.attributes.as<GammaDerivativeAttributes>();
          visit_floating(call.output().dtype(), [&, kind = kind, order = order]<class T>(T) {
            parallel_chunks(
                call.output().elements(), 32, [&](std::int64_t begin, std::int64_t end) {
                  for (std::int64_t i = begin; i < end; ++i) {
                    call.output().as<T>()[i] = static_cast<T>(
                        gamma_derivative(kind, order, static_cast<double>(call.input(0).as<T>()[i]),
                                         static_cast<double>(call.input(1).as<T>()[i])));
                  }
                });
          });
        },
    .vjp = pull_back_gamma_derivative,
    .cost = [](const NodeView& node) { return per_element(node, 3000); },
};

Var record_gamma_derivative(GammaDerivative kind, int order, const Var& a, const Var& l,
                            const Where& where) {
  if (order > max_gamma_order) {
    throw ArgumentError("gamma",
                        "derivatives of gamma variates exist up to order " +
                            std::to_string(max_gamma_order) + "; differentiate less often",
                        where);
  }
  const Var inputs[] = {a, l};
  const ValueType type = a.type();
  return a.tape().record(gamma_derivative_operation, inputs, {&type, 1},
                         GammaDerivativeAttributes{kind, order}, where);
}

const Operation poisson_operation{
    .name = "poisson",
    .formula = "y ~ Poisson(x), no derivative",
    .summary = "Poisson random numbers of given rates, by inversion",
    .compute =
        [](const KernelCall& call) {
          draw_by(
              call, "poisson", "give finite rates of 0 or more",
              [](double rate) {
                return rate >= 0 && rate < std::numeric_limits<double>::infinity();
              },
              poisson_quantile);
        },
    .cost = [](const NodeView& node) { return per_element(node, 300); },
    .mixed = MixedPrecision::recorded,
    .random = true,
};

Var record_draw(const Operation& operation, const Var& x, const Where& where) {
  const ValueType type = x.type();
  Tape& tape = x.tape();
  return tape.record(operation, {&x, 1}, {&type, 1}, StreamAttributes{tape.fresh_stream(), where},
                     where);
}

}  // namespace

std::span<const Operation* const> random_gamma_operations() {
  static const Operation* const family[] = {&log_gamma_operation, &gamma_derivative_operation,
                                            &poisson_operation};
  return family;
}

Var record_gamma_slope(const Var& a, const Var& l, const Where& where) {
  return record_gamma_derivative(GammaDerivative::distribution, 1, a, l, where);
}

Var log_gamma_variate(const Var& concentration, Where where) {
  require_floating(concentration, "gamma", where);
  return record_draw(log_gamma_operation, concentration, where);
}

Var poisson(const Var& rate, Where where) {
  require_floating(rate, "poisson", where);
  return record_draw(poisson_operation, rate, where);
}

}  // namespace palimpsest
