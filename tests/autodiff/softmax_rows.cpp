#include "autodiff/operations/normalization.h"

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/reduce.h"
#include "tests/autodiff/operation_rows.h"

namespace palimpsest {

std::vector<OperationRow> softmax_rows() {
  const Tensor x = Tensor::normal({3, 4, 5}, 41, 0, 2, DType::f64);
  const Tensor w = Tensor::normal({3, 4, 5}, 42, 0, 1, DType::f64);
  const Tensor wide = Tensor::normal({2, 3, 70}, 43, 0, 2, DType::f64);
  const Tensor large = Tensor::normal({2, 1200}, 44, 300, 5, DType::f64);
  return {
      {"softmax", "last axis", {x}, [](auto xs) { return softmax(xs[0]); }},
      {"softmax", "first axis", {x}, [](auto xs) { return softmax(xs[0], 0); }},
      {"softmax", "more columns than a batch", {wide}, [](auto xs) { return softmax(xs[0], 1); }},
      {"softmax", "long, far from zero", {large}, [](auto xs) { return softmax(xs[0]); }, 1, false},
      {"softmax",
       "a line of one, none at all",
       {Tensor::zeros({3, 1}, DType::f64), Tensor::zeros({0, 4}, DType::f64)},
       [](auto xs) { return softmax(xs[0]) + sum(softmax(xs[1])) + sum(softmax(xs[1], 0)); }},
      {"softmax_adjoint",
       "last axis",
       {x, w},
       [](auto xs) { return gradient(softmax(xs[0]) * xs[1], xs[0]); },
       2,
       false},
      {"softmax_adjoint",
       "middle axis",
       {x, w},
       [](auto xs) { return gradient(softmax(xs[0], 1) * xs[1], xs[0]); },
       2,
       false},
      {"log_softmax", "last axis", {x}, [](auto xs) { return log_softmax(xs[0]); }},
      {"log_softmax", "middle axis", {wide}, [](auto xs) { return log_softmax(xs[0], -2); }},
      {"log_softmax",
       "long, far from zero",
       {large},
       [](auto xs) { return log_softmax(xs[0]); },
       1,
       false},
      {"log_softmax_adjoint",
       "last axis",
       {x, w},
       [](auto xs) { return gradient(log_softmax(xs[0]) * xs[1], xs[0]); }},
      {"log_softmax_adjoint",
       "first axis",
       {x, w},
       [](auto xs) { return gradient(log_softmax(xs[0], 0) * xs[1], xs[0]); }},
  };
}

}  // namespace palimpsest
