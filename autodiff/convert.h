#pragma once

#include "autodiff/operation.h"

namespace palimpsest {

/// Fills `to` with the elements of `from` converted: floating to integer truncates, anything to
/// bool tests for non-zero, f64 to a 16-bit type rounds through f32. The element counts are equal.
void convert(const Operand& from, const Operand& to);

}  // namespace palimpsest
