#pragma once

#include "autodiff/operation.h"

namespace palimpsest {

/// Fills `to` with the elements of `from`, each converted as by `convert_element`. The element
/// counts are equal.
void convert(const Operand& from, const Operand& to);

}  // namespace palimpsest
