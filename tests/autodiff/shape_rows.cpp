#include "autodiff/operations/shape.h"

#include "tests/autodiff/operation_rows.h"

namespace palimpsest {

std::vector<OperationRow> shape_rows() {
  const Tensor x = Tensor::normal({3, 1, 5}, 31, 0, 1, DType::f64);
  return {
      {"reshape", "to rank 2", {x}, [](auto xs) { return reshape(xs[0], {5, -1}); }},
      {"broadcast_to",
       "middle and front",
       {x},
       [](auto xs) { return broadcast_to(xs[0], {2, 3, 4, 5}); }},
  };
}

}  // namespace palimpsest
