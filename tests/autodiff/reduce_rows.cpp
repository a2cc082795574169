#include "autodiff/operations/reduce.h"

#include "tests/autodiff/operation_rows.h"

namespace palimpsest {

std::vector<OperationRow> reduce_rows() {
  const Tensor x = Tensor::normal({3, 4, 5}, 21, 0, 1, DType::f64);
  return {
      {"sum", "all axes", {x}, [](auto xs) { return sum(xs[0]); }},
      {"sum", "middle axis", {x}, [](auto xs) { return sum(xs[0], {1}); }},
  };
}

}  // namespace palimpsest
