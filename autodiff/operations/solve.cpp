#include <algorithm>

#include "autodiff/gradient.h"
#include "autodiff/operations/attributes.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/linalg.h"
#include "autodiff/operations/lu.h"
#include "autodiff/operations/products.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/shape.h"

namespace palimpsest {
namespace {

/// Measures the workspace of factoring and of solving for `columns` columns.
template <class T>
Bytes solve_workspace(const FactorBatch& batch, std::int64_t columns, bool transpose, int threads) {
  return batch.workspace<T>(threads, Factors<T>::bytes(batch.n), [&](Products<T>& products) {
    const View<T> lu{nullptr, batch.n, batch.n, batch.n};
    const View<T> x{nullptr, batch.n, columns, columns};
    factor_lu(lu, nullptr, products);
    const View<T> m = transpose ? lu.transposed() : lu;
    solve_triangular(m, {}, x, products);
    solve_triangular(m, {.upper = true}, x, products);
  });
}

[[noreturn]] void throw_singular(const char* operation, const FactorBatch& batch,
                                 std::pair<std::int64_t, std::int64_t> failed, const Where& where) {
  throw ArgumentError(operation,
                      "matrix " + std::to_string(failed.first) + " of " +
                          std::to_string(batch.count) + " of size " + std::to_string(batch.n) +
                          " is singular: elimination finds no pivot for column " +
                          std::to_string(failed.second) +
                          "; add to its diagonal, or solve the least-squares problem with qr",
                      where);
}

// solve ------------------------------------------------------------------------------------------

FactorBatch solve_batch(const Shape& a, const Shape& x) {
  return {batch_of(x).elements(), a.size(-1)};
}

template <class T>
void compute_solve(const KernelCall& call) {
  const auto& [transpose, where] = call.attributes.as<SolveAttributes>();
  const Operand& a = call.input(0);
  const Operand& b = call.input(1);
  const Operand& x = call.output();
  const auto batch = solve_batch(a.shape(), x.shape());
  const std::int64_t n = batch.n;
  const std::int64_t columns = x.shape().size(-1);
  const Broadcast<2> places(batch_of(x.shape()), {batch_of(a.shape()), batch_of(b.shape())});
  const auto failed =
      batch.run<T>(call, Factors<T>::bytes(n),
                   [&, transpose = transpose](std::int64_t index, std::span<std::byte> own,
                                              Products<T>& products) {
                     const auto [at_a, at_b] = matrices_at(places, index);
                     const Factors<T> factors(own, a.as<T>() + at_a * n * n, n);
                     const std::int64_t pivot = factor_lu(factors.lu, factors.exchanges, products);
                     if (pivot >= 0) return pivot;
                     T* to = x.as<T>() + index * n * columns;
                     std::copy_n(b.as<T>() + at_b * n * columns, n * columns, to);
                     solve_factored<T>(factors, transpose, {to, n, columns, columns}, products);
                     return pivot;
                   });
  if (failed.first >= 0) throw_singular("solve", batch, failed, where);
}

const Operation solve_operation{
    .name = "solve",
    .formula = "a·x = b: b̄ = a⁻ᵀ·x̄, ā = -b̄·xᵀ; aᵀ·x = b: b̄ = a⁻¹·x̄, ā = -x·b̄ᵀ",
    .summary = "solution of square systems",
    .compute =
        [](const KernelCall& call) {
          visit_floating(call.output().dtype(), [&]<class T>(T) { compute_solve<T>(call); });
        },
    .vjp =
        [](const Pullback& p) {
          const Where where = p.where();
          const bool transpose = p.attributes().as<SolveAttributes>().transpose;
          const Var a = p.input(0);
          const Var b = p.input(1);
          const Var x = p.output();
          const Var db = solve(a, p.adjoint(), {.transpose = !transpose}, where);
          if (p.wants(1)) p.set(1, sum_to(db, b.shape(), where));
          if (!p.wants(0)) return;
          const Var less = -db;
          p.set(0, matmul_sum(transpose ? x : less, transpose ? less : x, {.transpose_b = true},
                              batch_of(a.shape()), where));
        },
    .cost =
        [](const NodeView& node) {
          const Shape x = node.output().shape;
          const auto n = static_cast<double>(x.size(-2));
          const auto count = static_cast<double>(batch_of(x).elements());
          return Cost{count * n * n * (2 * n / 3 + 2 * static_cast<double>(x.size(-1))),
                      bytes_moved(node)};
        },
    .workspace =
        [](const NodeView& node, int threads) {
          return visit_floating(compute_dtype(node.output().dtype), [&]<class T>(T) {
            const Shape x = node.output().shape;
            return solve_workspace<T>(solve_batch(node.input(0).shape, x), x.size(-1),
                                      node.attributes().as<SolveAttributes>().transpose, threads);
          });
        },
};

// inverse ----------------------------------------------------------------------------------------

template <class T>
void compute_inverse(const KernelCall& call) {
  const auto& [transpose, where] = call.attributes.as<SolveAttributes>();
  const auto batch = batch_for(call.input().shape());
  const std::int64_t n = batch.n;
  const auto failed =
      batch.run<T>(call, Factors<T>::bytes(n),
                   [&, transpose = transpose](std::int64_t index, std::span<std::byte> own,
                                              Products<T>& products) {
                     const Factors<T> factors(own, call.input().as<T>() + index * n * n, n);
                     const std::int64_t pivot = factor_lu(factors.lu, factors.exchanges, products);
                     if (pivot >= 0) return pivot;
                     const View<T> y{call.output().as<T>() + index * n * n, n, n, n};
                     std::fill_n(y.data, n * n, T(0));
                     for (std::int64_t i = 0; i < n; ++i) y(i, i) = T(1);
                     solve_factored(factors, transpose, y, products);
                     return pivot;
                   });
  if (failed.first >= 0) throw_singular("inverse", batch, failed, where);
}

const Operation inverse_operation{
    .name = "inverse",
    .formula = "y = a⁻¹, ā = -yᵀ·ȳ·yᵀ; y = a⁻ᵀ, ā = -y·ȳᵀ·y",
    .summary = "inverse of matrices",
    .compute =
        [](const KernelCall& call) {
          visit_floating(call.output().dtype(), [&]<class T>(T) { compute_inverse<T>(call); });
        },
    .vjp =
        [](const Pullback& p) {
          const bool plain = !p.attributes().as<SolveAttributes>().transpose;
          const Var left = matmul(p.output(), p.adjoint(), {plain, !plain}, p.where());
          p.set(0, -matmul(left, p.output(), {.transpose_b = plain}, p.where()));
        },
    .cost =
        [](const NodeView& node) {
          const auto n = static_cast<double>(node.output().shape.size(-1));
          return Cost{8 * n / 3 * static_cast<double>(node.output().shape.elements()),
                      2 * static_cast<double>(node.output().bytes())};
        },
    .workspace =
        [](const NodeView& node, int threads) {
          return visit_floating(compute_dtype(node.output().dtype), [&]<class T>(T) {
            const auto batch = batch_for(node.output().shape);
            return solve_workspace<T>(batch, batch.n,
                                      node.attributes().as<SolveAttributes>().transpose, threads);
          });
        },
};

}  // namespace

std::span<const Operation* const> solve_operations() {
  static const Operation* const family[] = {&solve_operation, &inverse_operation};
  return family;
}

Var solve(const Var& a, const Var& b, const SolveOptions& options, Where where) {
  check_matrices("solve", a, true, where);
  const Var pair[] = {a, b};
  common_tape(pair, "solve", where);
  if (b.rank() == 1) {
    const Var column = reshape(b, {b.shape()[0], 1}, where);
    const Var x = solve(a, column, options, where);
    Shape shape = x.shape();
    shape.erase(shape.rank() - 1);
    return reshape(x, shape, where);
  }
  check_matrices("solve", b, false, where);
  const Shape right = b.shape();
  if (right.size(-2) != a.shape().size(-1)) {
    throw ShapeError("solve",
                     "system of shape " + to_string(a.shape()) + " and right-hand side of shape " +
                         to_string(right) + " do not match; give both the same number of rows",
                     where);
  }
  const DType dtype = promote(a.dtype(), b.dtype());
  const ValueType type{with_matrix(broadcast_batches(a.shape(), right, "solve", where),
                                   right.size(-2), right.size(-1)),
                       dtype};
  const Var operands[] = {cast(a, dtype, where), cast(b, dtype, where)};
  return a.tape().record(solve_operation, operands, {&type, 1},
                         SolveAttributes{options.transpose, where}, where);
}

Var record_inverse(const Var& a, bool transpose, const Where& where) {
  const ValueType type = a.type();
  return a.tape().record(inverse_operation, {&a, 1}, {&type, 1}, SolveAttributes{transpose, where},
                         where);
}

Var inverse(const Var& a, Where where) {
  check_matrices("inverse", a, true, where);
  return record_inverse(a, false, where);
}

}  // namespace palimpsest
