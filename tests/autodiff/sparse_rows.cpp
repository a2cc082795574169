#include "autodiff/operations/sparse.h"

#include "tests/autodiff/operation_rows.h"

namespace palimpsest {

std::vector<OperationRow> sparse_rows() {
  // Rows with none, one, three and two entries; two entries are at the same position.
  const SparsePattern pattern(4, 5, {0, 0, 1, 4, 6}, {2, 0, 3, 1, 4, 4});
  const SparsePattern empty(2, 3, {0, 0, 0}, {});
  const auto normal = [](const Shape& shape, std::uint64_t seed) {
    return Tensor::normal(shape, seed, 0, 1, DType::f64);
  };
  const auto product = [](const SparsePattern& of, bool transpose = false) {
    return [of, transpose](auto xs) {
      return sparse_matmul(of, xs[0], xs[1], {.transpose = transpose});
    };
  };
  const auto sampled = [](const SparsePattern& of) {
    return [of](auto xs) { return sampled_matmul(of, xs[0], xs[1]); };
  };
  return {
      {"sparse_matmul", "matrix", {normal({6}, 71), normal({5, 3}, 72)}, product(pattern)},
      {"sparse_matmul", "vector", {normal({6}, 71), normal({5}, 72)}, product(pattern)},
      {"sparse_matmul", "batch", {normal({6}, 71), normal({2, 5, 1}, 72)}, product(pattern)},
      {"sparse_matmul",
       "transposed",
       {normal({6}, 71), normal({2, 4, 3}, 72)},
       product(pattern, true)},
      {"sparse_matmul", "no entries", {normal({0}, 71), normal({3, 2}, 72)}, product(empty)},
      {"sparse_matmul", "no columns", {normal({6}, 71), normal({5, 0}, 72)}, product(pattern)},
      {"sampled_matmul", "matrices", {normal({4, 3}, 71), normal({5, 3}, 72)}, sampled(pattern)},
      {"sampled_matmul", "batch", {normal({2, 4, 3}, 71), normal({2, 5, 3}, 72)}, sampled(pattern)},
      {"sampled_matmul", "no entries", {normal({2, 2}, 71), normal({3, 2}, 72)}, sampled(empty)},
  };
}

}  // namespace palimpsest
