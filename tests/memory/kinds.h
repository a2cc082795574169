#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "palimpsest.h"

namespace palimpsest {

/// Trains the model of the accounting tests, always on the same batch.
class Trainer {
 public:
  virtual ~Trainer() = default;
  /// Computes the gradients. Only the report outlives the call.
  virtual Report step() = 0;
};

/// The tensors of the model. They belong to the test and are in no budget.
struct ModelTensors {
  std::vector<Tensor> parameters;
  std::vector<Tensor> batch;
};

/// The model of the accounting tests: products with small matrices, and operations that fuse, view
/// and join. Most of its values have one size.
struct ModelSize {
  std::int64_t rows;  ///< of the values of one part of a batch
  int width;
  int layers;
};

/// A way to compute gradients within a budget.
struct Kind {
  std::string name;
  int parts;  ///< into which it cuts a batch
  std::function<std::unique_ptr<Trainer>(const ModelTensors& tensors, Bytes budget)> begin;
  bool is_uneven = false;  ///< the last part has one example fewer than the others
};
/// The tensors for a batch of its parts.
ModelTensors tensors_of(const ModelSize& size, const Kind& kind);

/// All kinds, in the order of the tables of the tests.
std::vector<Kind> kinds();

}  // namespace palimpsest
