#pragma once

#include <optional>
#include <span>

#include "autodiff/tape.h"

namespace palimpsest {

/// The number in every place of a node's output when its inputs have `numbers` in all of theirs:
/// of operations that are elementwise, only move elements or fold them. None for others, for
/// several outputs, for numbers that are not finite or that f64 does not hold, and where finding
/// out takes more than 1 MiB.
std::optional<double> literal_of(const NodeView& node, std::span<const double> numbers);

}  // namespace palimpsest
