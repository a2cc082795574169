#pragma once

#include "autodiff/operation.h"

namespace palimpsest {

/// Fills `to` with the elements of `from`, each converted by `convert_element`. Both have the same
/// number of elements.
void convert(const Operand& from, const Operand& to);

/// The kernel that converts a run of elements.
PointwiseKernel conversion(DType from, DType to);

/// Converts one element; x and y may be at the same address.
void convert_one(DType from, const std::byte* x, DType to, std::byte* y);

}  // namespace palimpsest
