#pragma once

#include <vector>

#include "strategy/execution/execution.h"

namespace palimpsest {

/// What is to be executed, for choosing how. Nothing of it is computed: tensors that describe
/// shapes alone, as `Tensor(shape)`, will do.
struct Workload {
  ModelFunction model = {};  ///< whose loss is differentiated, or whose value is wanted
  std::vector<Tensor> parameters = {};
  std::vector<Tensor> batch = {};
  bool training = true;  ///< gradients are wanted
  /// Whether the loss is a mean or a sum over the examples of the batch, which may then be cut into
  /// parts. Of values: whether each row is made of one example alone. A value is not cut that has
  /// another number of rows than there are examples, as a whole or in a half.
  bool may_be_cut = true;
};

}  // namespace palimpsest
