#pragma once

#include <string>
#include <vector>

#include "tests/autodiff/operation_rows.h"

namespace palimpsest::lattice {

/// Points at which formulas change their branch, as the inputs of a row. The shapes and the integer
/// inputs are the row's.
struct Points {
  std::string pattern;
  std::vector<Tensor> inputs;
  bool only_elementwise;  ///< where other formulas leave the range
  int round;              ///< selects the elements that are moved
};

/// All patterns of a row in f64 or f32, one draw of each. Neighbours are those of this dtype.
std::vector<Points> points_of(const OperationRow& row, DType dtype, int round);

}  // namespace palimpsest::lattice
