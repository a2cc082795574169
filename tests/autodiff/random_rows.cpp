#include "autodiff/operations/random.h"

#include "autodiff/operations/binary.h"
#include "tests/autodiff/operation_rows.h"

namespace palimpsest {

std::vector<OperationRow> random_rows() {
  const auto numbers = [](Shape shape) { return Tensor::normal(shape, 51, 0, 1, DType::f64); };
  return {
      {"uniform",
       "times a value",
       {numbers({3, 5})},
       [](auto xs) { return xs[0] * uniform(xs[0].tape(), {3, 5}, -1, 2); },
       1},
      {"normal",
       "times a value",
       {numbers({7})},
       [](auto xs) { return xs[0] * normal(xs[0].tape(), {7}, 1, 2); },
       1},
      {"bernoulli",
       "times a value",
       {numbers({7})},
       [](auto xs) { return xs[0] * bernoulli(xs[0].tape(), {7}, 0.5); },
       1},
      {"dropout",
       "of a square",
       {numbers({4, 6})},
       [](auto xs) { return dropout(xs[0] * xs[0], 0.4); }},
      {"dropout", "many", {numbers({3000})}, [](auto xs) { return dropout(xs[0], 0.9); }, 1},
      {"dropout", "scalar", {numbers({})}, [](auto xs) { return dropout(xs[0], 0.1); }},
  };
}

}  // namespace palimpsest
