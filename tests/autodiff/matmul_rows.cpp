#include "autodiff/operations/products.h"

#include "tests/autodiff/operation_rows.h"

namespace palimpsest {
namespace {

OperationRow product(const char* label, const Shape& a, const Shape& b,
                     const MatmulOptions& options = {}) {
  return {"matmul",
          label,
          {Tensor::normal(a, 41, 0, 1, DType::f64), Tensor::normal(b, 42, 0, 1, DType::f64)},
          [options](auto xs) { return matmul(xs[0], xs[1], options); }};
}

}  // namespace

std::vector<OperationRow> matmul_rows() {
  return {
      product("matrices", {3, 4}, {4, 5}),
      product("left transposed", {4, 3}, {4, 5}, {.transpose_a = true}),
      product("right transposed", {3, 4}, {5, 4}, {.transpose_b = true}),
      product("both transposed", {4, 3}, {5, 4}, {true, true}),
      product("a vector on the left", {4}, {4, 5}),
      product("a vector on the left, transposed", {4}, {2, 5, 4}, {.transpose_b = true}),
      product("a vector on the right", {2, 3, 4}, {4}),
      product("a vector on the right, transposed", {2, 4, 3}, {4}, {.transpose_a = true}),
      product("two vectors", {6}, {6}),
      product("one element", {1, 1}, {1, 1}),
      product("no rows", {0, 4}, {4, 5}),
      product("no depth", {3, 0}, {0, 5}),
      product("no matrices", {0, 3, 4}, {4, 5}),
      product("no matrices on the right", {3, 4}, {0, 4, 5}),
      product("batches", {2, 3, 3, 4}, {2, 3, 4, 2}),
      product("batches, both transposed", {2, 4, 3}, {2, 5, 4}, {true, true}),
      product("shared on the right", {2, 3, 4, 5}, {5, 2}),
      product("shared on the right, transposed", {2, 3, 4, 5}, {1, 2, 5}, {.transpose_b = true}),
      product("shared on the right, left transposed", {3, 5, 4}, {5, 2}, {.transpose_a = true}),
      product("shared on the left", {4, 5}, {2, 3, 5, 2}),
      product("shared on the left, both transposed", {5, 4}, {3, 2, 5}, {true, true}),
      product("outer broadcast", {3, 1, 4, 5}, {2, 5, 3}),
      product("outer broadcast, transposed", {3, 1, 4, 5}, {1, 2, 3, 5}, {.transpose_b = true}),
      product("odd and split", {129, 67}, {67, 141}),
      product("deep", {3, 1000}, {1000, 5}),
  };
}

}  // namespace palimpsest
