#pragma once

#include "autodiff/operation.h"

namespace palimpsest {

/// Fills `to` with the elements of `from`, each converted as by `convert_element`. The element
/// counts are equal.
void convert(const Operand& from, const Operand& to);

/// The kernel that does the same with a run of elements.
PointwiseKernel conversion(DType from, DType to);

/// The same with one element; the two may lie in one place.
void convert_one(DType from, const std::byte* x, DType to, std::byte* y);

}  // namespace palimpsest
