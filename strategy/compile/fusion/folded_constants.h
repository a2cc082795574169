#pragma once

#include <optional>
#include <span>

#include "autodiff/tape.h"

namespace palimpsest {

/// Constant folding: the value of every element of a node's output when its inputs are constant
/// arrays filled with `numbers`. For operations that are elementwise, only move elements, or reduce
/// them. Returns nothing for other operations and for several outputs. Also for results that are
/// not finite or not exact in f64, and where the evaluation would take more than 1 MiB.
std::optional<double> folded_constant_of(const NodeView& node, std::span<const double> numbers);

}  // namespace palimpsest
