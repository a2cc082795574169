#pragma once

#include <span>
#include <vector>

#include "tests/autodiff/operation_rows.h"

namespace palimpsest::lattice {

using Numbers = std::vector<double>;

/// Numbers between 0.5 and 1.5 that no symmetry makes cancel.
Numbers weights(std::size_t count, std::uint64_t seed);

/// The floating tensors in another dtype.
std::vector<Tensor> converted(std::span<const Tensor> inputs, DType dtype);

/// A row (order 1) or its first derivatives (order 2), as a function of its floating inputs.
class RecordedRow {
 public:
  RecordedRow(const OperationRow& row, std::span<const Tensor> inputs, int order);

  bool is_differentiable() const { return !floating_.empty() && is_floating(ys_[0].dtype()); }
  /// True if the row is one elementwise operation on inputs of the shape of its output. Then
  /// element k of the output depends on elements k of the inputs only.
  bool is_elementwise() const;

  /// All elements of the outputs.
  Numbers values() const;
  /// The derivatives of the sum of all elements times `by_output`, by each floating input.
  std::vector<Numbers> derivatives(const Numbers& by_output);

 private:
  std::vector<Var> seeds_of(const Numbers& by_output);

  std::string_view operation_;
  Tape tape_;
  std::vector<Var> xs_, floating_, ys_;
};

}  // namespace palimpsest::lattice
