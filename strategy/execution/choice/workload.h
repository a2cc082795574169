#pragma once

#include <vector>

#include "autodiff/export.h"
#include "strategy/execution/execution.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// A program to choose a strategy for. Nothing of it is computed, so tensors only need the right
/// shapes, as `Tensor(shape)` has.
struct Workload {
  ModelFunction model = {};  ///< returns the loss to differentiate, or the value to compute
  std::vector<Tensor> parameters = {};
  std::vector<Tensor> batch = {};
  bool training = true;  ///< whether gradients are computed
  /// Whether the batch may be cut into parts. For a loss: whether it is a mean or a sum over the
  /// examples. For a value: whether each row depends on one example alone. A value is not cut if
  /// its number of rows differs from the number of examples, for the whole batch or for half of it.
  bool may_be_cut = true;
};

}  // namespace palimpsest
