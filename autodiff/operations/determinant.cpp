#include <cmath>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/linalg.h"
#include "autodiff/operations/lu.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/shape.h"

namespace palimpsest {
namespace {

/// Calls `f(index, diagonal of U, sign of the exchanges)` for each matrix.
template <class T, class F>
std::pair<std::int64_t, std::int64_t> for_determinants(const KernelCall& call, F f) {
  const auto batch = batch_for(call.input().shape());
  const std::int64_t n = batch.n;
  return batch.run<T>(call, Factors<T>::bytes(n),
                      [&](std::int64_t index, std::span<std::byte> own, Products<T>& products) {
                        const Factors<T> factors(own, call.input().as<T>() + index * n * n, n);
                        factor_lu(factors.lu, factors.exchanges, products);
                        int sign = 1;
                        for (std::int64_t i = 0; i < n; ++i)
                          sign = factors.exchanges[i] == i ? sign : -sign;
                        return f(index, factors.lu, sign);
                      });
}

template <class T>
std::pair<int, T> sign_and_log(View<T> lu, int sign) {
  T sum = 0;
  for (std::int64_t i = 0; i < lu.rows; ++i) {
    sign = lu(i, i) < 0 ? -sign : lu(i, i) == 0 ? 0 : sign;
    sum += std::log(std::abs(lu(i, i)));
  }
  return {sign, sum};
}

Cost determinant_cost(const NodeView& node) {
  const auto n = static_cast<double>(node.input(0).shape.size(-1));
  return {2 * n / 3 * static_cast<double>(node.input(0).shape.elements()),
          static_cast<double>(node.input(0).bytes())};
}

Bytes determinant_workspace(const NodeView& node, int threads) {
  return visit_floating(compute_dtype(node.output().dtype), [&]<class T>(T) {
    const auto batch = batch_for(node.input(0).shape);
    return batch.workspace<T>(threads, Factors<T>::bytes(batch.n), [&](Products<T>& products) {
      factor_lu(View<T>{nullptr, batch.n, batch.n, batch.n}, nullptr, products);
    });
  });
}

/// ā = ȳ·a⁻ᵀ, where ȳ has one element per matrix.
void pull_back_log(const Pullback& p, const Var& dy) {
  const Var a = p.input();
  const Var each = reshape(dy, with_matrix(batch_of(a.shape()), 1, 1), p.where());
  p.set(0, each * record_inverse(a, true, p.where()));
}

const Operation det_operation{
    .name = "det",
    .formula = "y = det a, ā = ȳ·cofactors(a)",
    .summary = "determinant, with derivatives at singular matrices too",
    .compute =
        [](const KernelCall& call) {
          visit_floating(call.output().dtype(), [&]<class T>(T) {
            for_determinants<T>(call, [&](std::int64_t index, View<T> lu, int sign) {
              T product = static_cast<T>(sign);
              for (std::int64_t i = 0; i < lu.rows; ++i) product *= lu(i, i);
              call.output().as<T>()[index] = product;
              return std::int64_t{-1};
            });
          });
        },
    .vjp =
        [](const Pullback& p) {
          const Var a = p.input();
          const Shape shape = with_matrix(batch_of(a.shape()), 1, 1);
          p.set(0, reshape(p.adjoint(), shape, p.where()) * record_cofactors({&a, 1}, p.where()));
        },
    .cost = determinant_cost,
    .workspace = determinant_workspace,
};

const Operation logdet_operation{
    .name = "logdet",
    .formula = "y = log det a, ā = ȳ·a⁻ᵀ",
    .summary = "logarithm of a positive determinant",
    .compute =
        [](const KernelCall& call) {
          const auto failed = visit_floating(call.output().dtype(), [&]<class T>(T) {
            return for_determinants<T>(call, [&](std::int64_t index, View<T> lu, int exchanges) {
              const auto [sign, sum] = sign_and_log(lu, exchanges);
              call.output().as<T>()[index] = sum;
              return std::int64_t{sign > 0 ? -1 : 0};
            });
          });
          if (failed.first < 0) return;
          throw ArgumentError(
              "logdet",
              "matrix " + std::to_string(failed.first) + " of shape " +
                  to_string(call.input().shape()) +
                  " has a determinant that is not positive; use slogdet for any sign",
              call.attributes.as<Blamed>().where);
        },
    .vjp = [](const Pullback& p) { pull_back_log(p, p.adjoint()); },
    .cost = determinant_cost,
    .workspace = determinant_workspace,
};

const Operation slogdet_operation{
    .name = "slogdet",
    .formula = "s = sign det a, y = log |det a|, ā = ȳ·a⁻ᵀ",
    .summary = "sign and logarithm of a determinant",
    .compute =
        [](const KernelCall& call) {
          visit_floating(call.output().dtype(), [&]<class T>(T) {
            for_determinants<T>(call, [&](std::int64_t index, View<T> lu, int exchanges) {
              const auto [sign, sum] = sign_and_log(lu, exchanges);
              call.output(0).as<T>()[index] = static_cast<T>(sign);
              call.output(1).as<T>()[index] = sum;
              return std::int64_t{-1};
            });
          });
        },
    .vjp =
        [](const Pullback& p) {
          if (p.has_adjoint(1)) pull_back_log(p, p.adjoint(1));
        },
    .cost = determinant_cost,
    .workspace = determinant_workspace,
};

}  // namespace

std::span<const Operation* const> determinant_operations() {
  static const Operation* const family[] = {&det_operation, &logdet_operation, &slogdet_operation};
  return family;
}

Var det(const Var& a, Where where) {
  check_matrices("det", a, true, where);
  const ValueType type{batch_of(a.shape()), a.dtype()};
  return a.tape().record(det_operation, {&a, 1}, {&type, 1}, {}, where);
}

Var logdet(const Var& a, Where where) {
  check_matrices("logdet", a, true, where);
  const ValueType type{batch_of(a.shape()), a.dtype()};
  return a.tape().record(logdet_operation, {&a, 1}, {&type, 1}, Blamed{where}, where);
}

Slogdet slogdet(const Var& a, Where where) {
  check_matrices("slogdet", a, true, where);
  const ValueType type{batch_of(a.shape()), a.dtype()};
  const ValueType types[] = {type, type};
  const Var sign = a.tape().record(slogdet_operation, {&a, 1}, types, {}, where);
  return {sign, sign.output(1)};
}

}  // namespace palimpsest
