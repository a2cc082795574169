#include <algorithm>

#include "autodiff/gradient.h"
#include "autodiff/operations/attributes.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/factor_batch.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/linalg.h"
#include "autodiff/operations/products.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/triangle.h"

namespace palimpsest {
namespace {

FactorBatch batch_for(const Shape& a, const Shape& x) {
  return {batch_of(x).elements(), a.size(-1)};
}

/// Solves one system. A triangle on the right is handled by transposing the whole system.
template <class T>
void solve_one(const TriangularSolveOptions& options, View<T> a, View<T> x, Products<T>& products) {
  const bool flip = options.transpose != options.right;
  solve_triangular(flip ? a.transposed() : a, {.upper = options.upper != flip},
                   options.right ? x.transposed() : x, products);
}

template <class T>
void compute_triangular_solve(const KernelCall& call) {
  const auto& [options, where] = call.attributes.as<TriangularAttributes>();
  const Operand& a = call.input(0);
  const Operand& b = call.input(1);
  const Operand& x = call.output();
  const auto batch = batch_for(a.shape(), x.shape());
  const std::int64_t n = batch.n;
  const std::int64_t rows = x.shape().size(-2);
  const std::int64_t columns = x.shape().size(-1);
  const Broadcast<2> places(batch_of(x.shape()), {batch_of(a.shape()), batch_of(b.shape())});
  const auto [matrix, pivot] =
      batch.run<T>(call, 0, [&](std::int64_t index, std::span<std::byte>, Products<T>& products) {
        const auto [at_a, at_b] = matrices_at(places, index);
        const View<T> triangle{a.as<T>() + at_a * n * n, n, n, n};
        T* unknowns = x.as<T>() + index * rows * columns;
        for (std::int64_t i = 0; i < n; ++i) {
          if (triangle(i, i) == T(0)) return i;
        }
        std::copy_n(b.as<T>() + at_b * rows * columns, rows * columns, unknowns);
        solve_one<T>(options, triangle, {unknowns, rows, columns, columns}, products);
        return std::int64_t{-1};
      });
  if (matrix < 0) return;
  throw ArgumentError(
      "triangular_solve",
      "system " + std::to_string(matrix) + " of " + std::to_string(batch.count) + " of size " +
          std::to_string(n) + " is singular: element " + std::to_string(pivot) +
          " of the diagonal is 0; add to the diagonal, or remove that row and column",
      where);
}

void pull_back_triangular_solve(const Pullback& p) {
  const Where where = p.where();
  const TriangularSolveOptions options = p.attributes().as<TriangularAttributes>().options;
  const Var a = p.input(0);
  const Var b = p.input(1);
  const Var x = p.output();
  TriangularSolveOptions back = options;
  back.transpose = !options.transpose;
  const Var db = triangular_solve(a, p.adjoint(), back, where);
  if (p.wants(1)) p.set(1, sum_to(db, b.shape(), where));
  if (!p.wants(0)) return;
  // Ā = −B̄·Xᵀ for A on the left and −Xᵀ·B̄ on the right; transposed if A was.
  const bool flip = options.transpose != options.right;
  const Var da = matmul_sum(flip ? x : db, flip ? db : x, {options.right, !options.right},
                            batch_of(a.shape()), where);
  p.set(0, triangle(da, {.upper = options.upper, .factor = -1}, where));
}

const Operation triangular_solve_operation{
    .name = "triangular_solve",
    .formula = "op(a)·x = b: b̄ = op(a)⁻ᵀ·x̄, ā = -tri(b̄·xᵀ) or its transpose; x·op(a) = b likewise",
    .summary = "solution of triangular systems",
    .compute =
        [](const KernelCall& call) {
          visit_floating(call.output().dtype(),
                         [&]<class T>(T) { compute_triangular_solve<T>(call); });
        },
    .vjp = pull_back_triangular_solve,
    .cost =
        [](const NodeView& node) {
          const auto n = static_cast<double>(node.input(0).shape.size(-1));
          return Cost{n * static_cast<double>(node.output().shape.elements()), bytes_moved(node)};
        },
    .workspace =
        [](const NodeView& node, int threads) {
          return visit_floating(compute_dtype(node.output().dtype), [&]<class T>(T) {
            const Shape x = node.output().shape;
            const auto batch = batch_for(node.input(0).shape, x);
            return batch.workspace<T>(threads, 0, [&](Products<T>& products) {
              solve_one<T>(node.attributes().as<TriangularAttributes>().options,
                           {nullptr, batch.n, batch.n, batch.n},
                           {nullptr, x.size(-2), x.size(-1), x.size(-1)}, products);
            });
          });
        },
};

}  // namespace

std::span<const Operation* const> triangular_solve_operations() {
  static const Operation* const family[] = {&triangular_solve_operation};
  return family;
}

Var triangular_solve(const Var& a, const Var& b, const TriangularSolveOptions& options,
                     Where where) {
  const char* const name = "triangular_solve";
  check_matrices(name, a, true, where);
  check_matrices(name, b, false, where);
  if (b.shape().size(options.right ? -1 : -2) != a.shape().size(-1)) {
    throw ShapeError(name,
                     "system of shape " + to_string(a.shape()) + " and right-hand side of shape " +
                         to_string(b.shape()) + " do not match; give both the same number of " +
                         (options.right ? "columns" : "rows"),
                     where);
  }
  const Shape batch = broadcast_batches(a.shape(), b.shape(), name, where);
  const DType dtype = promote(a.dtype(), b.dtype());
  const ValueType type{with_matrix(batch, b.shape().size(-2), b.shape().size(-1)), dtype};
  const Var operands[] = {cast(a, dtype, where), cast(b, dtype, where)};
  return a.tape().record(triangular_solve_operation, operands, {&type, 1},
                         TriangularAttributes{options, where}, where);
}

}  // namespace palimpsest
