#pragma once

#include <cstdint>

#include "autodiff/tensor.h"

namespace palimpsest::lattice {

/// The number with which rounding errors of a row grow.
enum class Condition : std::uint8_t {
  none,
  inverse,  ///< σ₁/σₙ, the condition number of its first input, for rows that divide by factors
  singular_gaps,  ///< σ₁ by the smallest difference of two singular values or of one and 0
  eigen_gaps      ///< the same of eigenvalues
};

/// The largest of these of all matrices; 0 for `none`.
double condition_of(Condition condition, const Tensor& matrices);

}  // namespace palimpsest::lattice
