#include <algorithm>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/factor_batch.h"
#include "autodiff/operations/linalg.h"
#include "autodiff/operations/products.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/triangle.h"

namespace palimpsest {
namespace {

template <class T>
void compute_cholesky(const KernelCall& call) {
  const auto batch = batch_for(call.input().shape());
  const std::int64_t n = batch.n;
  const T* a = call.input().as<T>();
  T* l = call.output().as<T>();
  const auto [matrix, pivot] =
      batch.run<T>(call, 0, [&](std::int64_t index, std::span<std::byte>, Products<T>& products) {
        T* factor = l + index * n * n;
        for (std::int64_t i = 0; i < n; ++i) {
          std::copy_n(a + index * n * n + i * n, i + 1, factor + i * n);
        }
        const std::int64_t failed = factor_cholesky(View<T>{factor, n, n, n}, products);
        for (std::int64_t i = 0; i < n; ++i) {
          std::fill(factor + i * n + i + 1, factor + (i + 1) * n, T(0));
        }
        return failed;
      });
  if (matrix < 0) return;
  throw ArgumentError("cholesky",
                      "matrix " + std::to_string(matrix) + " of " + std::to_string(batch.count) +
                          " of size " + std::to_string(n) +
                          " is not positive definite: elimination stops at row " +
                          std::to_string(pivot) + "; add to its diagonal, or use eigh",
                      call.attributes.as<Blamed>().where);
}

// Φ takes the lower triangle with half the diagonal. Murray (2016), equation 8, gives the adjoint
// of a symmetric matrix. Here the lower triangle receives the share of both triangles.
void pull_back_cholesky(const Pullback& p) {
  const Where where = p.where();
  const Var l = p.output();
  const Var inner = half_tril(matmul(l, p.adjoint(), {.transpose_a = true}, where), where);
  const Var left = triangular_solve(l, inner, {.transpose = true}, where);
  const Var both = triangular_solve(l, left, {.right = true}, where);
  p.set(0, half_tril(add(both, transpose(both, -2, -1, where), where), where));
}

const Operation cholesky_operation{
    .name = "cholesky",
    .formula = "a = l·lᵀ, ā = Φ(s + sᵀ) with s = l⁻ᵀ·Φ(lᵀ·l̄)·l⁻¹",
    .summary = "lower triangular factor of symmetric positive definite matrices",
    .compute =
        [](const KernelCall& call) {
          visit_floating(call.output().dtype(), [&]<class T>(T) { compute_cholesky<T>(call); });
        },
    .vjp = pull_back_cholesky,
    .cost =
        [](const NodeView& node) {
          const FactorBatch batch = batch_for(node.input(0).shape);
          const auto size = static_cast<double>(batch.n);
          return Cost{static_cast<double>(batch.count) * size * size * size / 3,
                      2 * static_cast<double>(node.output().bytes())};
        },
    .workspace =
        [](const NodeView& node, int threads) {
          return visit_floating(compute_dtype(node.output().dtype), [&]<class T>(T) {
            const auto batch = batch_for(node.input(0).shape);
            return batch.workspace<T>(threads, 0, [&](Products<T>& products) {
              factor_cholesky(View<T>{nullptr, batch.n, batch.n, batch.n}, products);
            });
          });
        },
};

}  // namespace

std::span<const Operation* const> cholesky_operations() {
  static const Operation* const family[] = {&cholesky_operation};
  return family;
}

Var cholesky(const Var& a, Where where) {
  check_matrices("cholesky", a, true, where);
  const ValueType type = a.type();
  return a.tape().record(cholesky_operation, {&a, 1}, {&type, 1}, Blamed{where}, where);
}

}  // namespace palimpsest
