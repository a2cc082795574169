#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tests/autodiff/lattice/recorded_row.h"

namespace palimpsest::lattice {

/// Derivatives in f64 at inputs that differ by a few units in the last place of a dtype. Where a
/// derivative is badly conditioned, as that of a nearly singular matrix, a computed one has such an
/// error. At a branch, neighbours have the derivatives of both sides.
class Neighbours {
 public:
  Neighbours(const OperationRow& row, std::span<const Tensor> inputs, DType dtype, int order,
             const Numbers& weights, bool is_elementwise);

  /// Whether the derivative by the sum of elements of a floating input lies between those of the
  /// neighbours, or a hundredth of their distance beside.
  bool surround(std::size_t input, const std::vector<std::int64_t>& elements,
                double derivative) const;

 private:
  std::vector<std::vector<Numbers>> derivatives_;
};

}  // namespace palimpsest::lattice
