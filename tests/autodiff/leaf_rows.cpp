#include "autodiff/operations/leaf.h"

#include "autodiff/operations/binary.h"
#include "tests/autodiff/operation_rows.h"

namespace palimpsest {

std::vector<OperationRow> leaf_rows() {
  const Tensor x = Tensor::normal({3, 5}, 11, 0, 1, DType::f64);
  return {
      {"parameter", "a leaf by itself", {x}, [](auto xs) { return xs[0]; }},
      {"constant",
       "beside a variable",
       {x},
       [x](auto xs) { return xs[0] * xs[0].tape().constant(x.to(xs[0].dtype())); }},
      {"full", "two thirds", {x}, [](auto xs) { return xs[0] * full_like(xs[0], 0.625); }},
      {"stop_gradient", "value", {x}, [](auto xs) { return stop_gradient(xs[0]); }, 0},
      {"identity", "beside itself", {x}, [](auto xs) { return identity(xs[0]) * xs[0]; }},
      {"cast", "to f32", {x}, [](auto xs) { return cast(xs[0], DType::f32); }, 0},
      {"cast", "to i64", {x}, [](auto xs) { return cast(xs[0], DType::i64); }, 0},
      {"cast", "to bool", {x}, [](auto xs) { return cast(xs[0], DType::boolean); }, 0},
  };
}

}  // namespace palimpsest
