// Examples of docs/reference/linear-algebra.md.
#include <palimpsest/autodiff/eigen_sparse.h>

#include "docs/snippets/reference/example.h"

namespace reference {

EXAMPLE(matmul, MatmulOptions) {
  const Tensor a = Tensor::matrix({{1, 2}, {3, 4}}), b = Tensor::matrix({{1, 0}, {0, 2}});
  print(matmul(a, b));                         // → [[1, 4], [3, 8]]
  print(matmul(a, b, {.transpose_a = true}));  // → [[1, 6], [2, 8]]
  // Batches broadcast.
  print(matmul(Tensor::ones({5, 2, 3}), Tensor::ones({3, 4})).shape());  // → (5, 2, 4)
}

EXAMPLE(dot, outer, vecdot) {
  const Tensor a = Tensor::vector({1, 2}), b = Tensor::vector({3, 4});
  print(dot(a, b), outer(a, b));                       // → 11 [[3, 4], [6, 8]]
  print(vecdot(Tensor::matrix({{1, 2}, {3, 4}}), b));  // → [11, 25]
}

EXAMPLE(tensordot, multi_dot) {
  const Tensor a = Tensor::ones({2, 3, 4}), b = Tensor::ones({3, 4, 5});
  // Over two axes.
  print(tensordot(a, b).shape());  // → (2, 5)
  // Axis 1 of a, axis 0 of b.
  print(tensordot(a, b, {1}, {0}).shape());  // → (2, 4, 4, 5)
  Tape tape;
  const Var u = tape.constant(Tensor::ones({1, 9})), v = tape.constant(Tensor::ones({9, 9}));
  // In the cheapest order.
  print(multi_dot({u, v, v}).shape());  // → (1, 9)
}

EXAMPLE(linear) {
  const Tensor x = Tensor::matrix({{1, 2}}), weight = Tensor::matrix({{1, 0}, {0, 1}});
  // x·weight + bias.
  print(linear(x, weight, Tensor::vector({10, 20})));  // → [[11, 22]]
}

EXAMPLE(einsum) {
  Tape tape;
  const Var a = tape.constant(Tensor::matrix({{1, 2}, {3, 4}}));
  print(einsum("ij->ji", {a}));        // → [[1, 3], [2, 4]]
  print(einsum("ij,jk->ik", {a, a}));  // → [[7, 10], [15, 22]]
  print(einsum("ii", {a}));            // → 5
}

EXAMPLE(matmul_sum) {
  Tape tape;
  const Var a = tape.constant(Tensor::ones({5, 2, 3})), b = tape.constant(Tensor::ones({5, 3, 4}));
  // Summed over the batch.
  print(matmul_sum(a, b, {}, {}).shape());  // → (2, 4)
}

EXAMPLE(tril, triu) {
  const Tensor x = Tensor::matrix({{1, 2}, {3, 4}});
  print(tril(x), triu(x, 1));  // → [[1, 0], [3, 4]] [[0, 2], [0, 0]]
}

EXAMPLE(cholesky, logdet) {
  const Tensor a = Tensor::matrix({{4, 2}, {2, 3}});
  print(cholesky(a), logdet(a));  // → [[2, 0], [1, 1.414]] 2.079
}

EXAMPLE(solve, SolveOptions, inverse, inv) {
  const Tensor a = Tensor::matrix({{2, 0}, {0, 4}});
  print(solve(a, Tensor::matrix({{2}, {8}})));  // → [[1], [2]]
  print(inverse(a));                            // → [[0.5, 0], [0, 0.25]]
}

EXAMPLE(triangular_solve, TriangularSolveOptions) {
  const Tensor a = Tensor::matrix({{2, 9}, {1, 1}});
  // By the lower triangle.
  print(triangular_solve(a, Tensor::matrix({{2}, {3}})));                   // → [[1], [2]]
  print(triangular_solve(a, Tensor::matrix({{2}, {3}}), {.upper = true}));  // → [[-12.5], [3]]
}

EXAMPLE(det, slogdet, Slogdet) {
  const Tensor a = Tensor::matrix({{1, 2}, {3, 4}});
  print(det(a));                                     // → -2
  print(slogdet(a).sign, slogdet(a).log_magnitude);  // → -1 0.6931
}

EXAMPLE(qr, Qr) {
  const auto [q, r] = qr(Tensor::matrix({{0, 2}, {3, 0}}));
  print(matmul(q, r));  // → [[0, 2], [3, 0]]
}

EXAMPLE(eigh, Eigh) {
  print(eigh(Tensor::matrix({{2, 1}, {1, 2}})).values);  // → [1, 3]
}

EXAMPLE(svd, svdvals, Svd) {
  const Tensor a = Tensor::matrix({{3, 0}, {0, -2}});
  print(svdvals(a), svd(a).values);  // → [3, 2] [3, 2]
}

EXAMPLE(pinv, lstsq) {
  const Tensor a = Tensor::matrix({{1, 0}, {1, 1}, {1, 2}});
  // A line through three points.
  print(lstsq(a, Tensor::matrix({{1}, {3}, {5}})));  // → [[1], [2]]
  print(pinv(Tensor::matrix({{2, 0}, {0, 0}})));     // → [[0.5, 0], [0, 0]]
}

EXAMPLE(matrix_exp, matrix_power) {
  print(matrix_exp(Tensor::matrix({{0, 1}, {0, 0}})));       // → [[1, 1], [0, 1]]
  print(matrix_power(Tensor::matrix({{1, 1}, {0, 1}}), 5));  // → [[1, 5], [0, 1]]
}

EXAMPLE(matrix_norm, MatrixNorm) {
  const Tensor a = Tensor::matrix({{3, 0}, {0, 4}});
  print(matrix_norm(a), matrix_norm(a, MatrixNorm::spectral), matrix_norm(a, MatrixNorm::nuclear));
  // → 5 4 7
}

EXAMPLE(SparsePattern, sparse_matmul, SparseMatmulOptions) {
  // 2 × 3 with entries at (0, 0), (0, 2) and (1, 1)
  const SparsePattern pattern(2, 3, {0, 2, 3}, {0, 2, 1});
  const Tensor values = Tensor::vector({1, 2, 3});
  print(sparse_matmul(pattern, values, Tensor::matrix({{1}, {10}, {100}})));  // → [[201], [30]]
  print(pattern.rows(), pattern.columns(), pattern.entries());                // → 2 3 3
}

EXAMPLE(sampled_matmul) {
  const SparsePattern pattern(2, 2, {0, 1, 2}, {0, 1});
  print(sampled_matmul(pattern, Tensor::matrix({{1}, {2}}), Tensor::matrix({{3}, {4}})));
  // → [3, 8]
}

EXAMPLE(SparsePattern::by_row, SparsePattern::by_column, SparsePattern::described) {
  const SparsePattern pattern(2, 2, {0, 1, 2}, {1, 0});
  print(pattern.by_row().other[0], pattern.by_column().other[0]);  // → 1 1
  print(pattern.described().other == pattern.by_row().other);      // → true
}

EXAMPLE(to_sparse, SparseTensor) {
  const Eigen::SparseMatrix<float> matrix = Eigen::Matrix2f{{1, 0}, {2, 3}}.sparseView();
  const SparseTensor sparse = to_sparse(matrix);
  print(sparse.pattern.entries(), sparse.values);  // → 3 [1, 2, 3]
  Tape tape;
  const Var x = tape.constant(Tensor::matrix({{1}, {10}}));
  // Converts the matrix in each call.
  print(sparse_matmul(matrix, x));  // → [[1], [32]]
}

}  // namespace reference
