// Special values in products, convolutions, pooling, indexing, matrices and attention.
#include <limits>

#include "autodiff/operations/convolution.h"
#include "autodiff/operations/image.h"
#include "autodiff/operations/index.h"
#include "autodiff/operations/linalg.h"
#include "autodiff/operations/products.h"
#include "autodiff/operations/sequence.h"
#include "autodiff/operations/shape.h"
#include "tests/oracle/oracle_rows.h"

namespace palimpsest::oracle {

std::vector<OperationRow> layer_rows(DType dtype) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const auto some = [dtype](const Shape& shape, std::uint64_t seed) {
    return normal_numbers(shape, seed).to(dtype);
  };
  const auto of = [dtype](std::vector<double> values, std::initializer_list<std::int64_t> sizes) {
    return numbers(values, dtype).reshape(sizes);
  };
  const Tensor spoiled = of({1, nan, 2, infinity, 0, -1, 3, 0.5, -infinity, 1.5, 2.5, 0}, {3, 4});
  const Tensor places = Tensor::from<std::int64_t>({1, 0, 1}, {3});
  std::vector<OperationRow> rows = {
      {"matmul",
       "special numbers",
       {spoiled, some({4, 5}, 2)},
       [](auto xs) { return matmul(xs[0], xs[1]); }},
      {"matmul",
       "zeros and infinities",
       {of({0, 0, 1, 1}, {2, 2}), of({infinity, 1, 1, 2}, {2, 2})},
       [](auto xs) { return matmul(xs[0], xs[1]); }},
      {"matmul",
       "transposed views",
       {some({7, 3}, 3), some({5, 7}, 4)},
       [](auto xs) { return matmul(transpose(xs[0]), transpose(xs[1])); }},
      {"max_pool",
       "special numbers",
       {spoiled.reshape({1, 3, 4})},
       [](auto xs) { return max_pool(xs[0], 2); }},
      {"max_pool",
       "equal numbers",
       {Tensor::ones({1, 1, 4, 4}, dtype)},
       [](auto xs) { return max_pool(xs[0], 2); }},
      {"max_pool",
       "negative infinities",
       {Tensor::full({1, 1, 4}, -infinity, dtype)},
       [](auto xs) { return max_pool(xs[0], 2); }},
      {"average_pool",
       "special numbers",
       {spoiled.reshape({1, 3, 4})},
       [](auto xs) { return average_pool(xs[0], 2); }},
      {"conv1d",
       "special numbers",
       {spoiled.reshape({1, 3, 4}), some({2, 3, 3}, 5)},
       [](auto xs) { return conv1d(xs[0], xs[1], {}, {.padding = 1}); }},
      {"conv1d",
       "one element",
       {some({1, 1, 1}, 5), some({1, 1, 1}, 6), some({1}, 7)},
       [](auto xs) { return conv1d(xs[0], xs[1], xs[2]); }},
      {"index_select",
       "special numbers",
       {spoiled, places},
       [](auto xs) { return index_select(xs[0], 0, xs[1]); }},
      {"index_add",
       "special numbers",
       {spoiled, places},
       [](auto xs) { return index_add(xs[0], 0, xs[1], 2); }},
      {"concat",
       "special numbers",
       {spoiled, spoiled},
       [](auto xs) { return concat({xs[0], xs[1]}, 0); }},
      {"pad",
       "special numbers",
       {spoiled},
       [](auto xs) { return pad(xs[0], {{1, 0}, {0, 1}}, -2); }},
      {"upsample",
       "special numbers",
       {spoiled.reshape({1, 3, 4})},
       [](auto xs) { return upsample(xs[0], 2, {Interpolation::linear}); }},
      {"tril", "special numbers", {spoiled}, [](auto xs) { return tril(xs[0]); }},
      {"triu", "special numbers", {spoiled}, [](auto xs) { return triu(xs[0]); }},
      {"attention",
       "one key",
       {some({1, 2}, 8), some({1, 2}, 9), some({1, 3}, 10)},
       [](auto xs) { return scaled_dot_product_attention(xs[0], xs[1], xs[2]); }},
      {"attention",
       "far scores",
       {of({100, -100, 50, 0}, {2, 2}), of({100, 1, -100, 2}, {2, 2}), some({2, 3}, 10)},
       [](auto xs) { return scaled_dot_product_attention(xs[0], xs[1], xs[2]); }},
      {"attention, masked",
       "a key of infinity that is not seen",
       {some({2, 2}, 8), of({1, 2, infinity, nan}, {2, 2}), some({2, 3}, 10),
        Tensor::from<std::int64_t>({1, 0, 1, 0}, {2, 2}).to(DType::boolean)},
       [](auto xs) { return scaled_dot_product_attention(xs[0], xs[1], xs[2], {.mask = xs[3]}); },
       1},
  };
  if (is_half(dtype)) return rows;
  const Tensor singular = of({1, 2, 2, 4}, {2, 2});
  const std::vector<OperationRow> matrices = {
      {"det", "singular matrix", {singular}, [](auto xs) { return det(xs[0]); }},
      {"det", "of zeros", {Tensor::zeros({3, 3}, dtype)}, [](auto xs) { return det(xs[0]); }},
      {"det", "NaN", {of({1, nan, 2, 1}, {2, 2})}, [](auto xs) { return det(xs[0]); }, 0},
      {"det", "no rows", {Tensor::zeros({0, 0}, dtype)}, [](auto xs) { return det(xs[0]); }},
      {"slogdet", "singular", {singular}, [](auto xs) { return slogdet(xs[0]).log_magnitude; }, 0},
      {"inverse", "one element", {of({4}, {1, 1})}, [](auto xs) { return inverse(xs[0]); }},
      {"inverse",
       "far apart",
       {of({1e-3, 1, 0, 1e3}, {2, 2})},
       [](auto xs) { return inverse(xs[0]); }},
      {"cholesky", "one element", {of({4}, {1, 1})}, [](auto xs) { return cholesky(xs[0]); }},
      {"cholesky",
       "as it is",
       {of({2, 0.5, 0.5, 2}, {2, 2})},
       [](auto xs) { return cholesky(xs[0]); }},
      {"eigh",
       "values as they are",
       {of({2, 0.5, 0.5, 2}, {2, 2})},
       [](auto xs) { return eigh(xs[0]).values; }},
  };
  rows.insert(rows.end(), matrices.begin(), matrices.end());
  return rows;
}

}  // namespace palimpsest::oracle
