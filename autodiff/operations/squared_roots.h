#pragma once

#include <optional>
#include <span>

#include "autodiff/gradient.h"

namespace palimpsest {

// The square of a root has a second derivative at 0, where the root has none: the square of a norm
// with p = 2, of `hypot`, `abs` or `standard_deviation`. So the derivative of the square is taken
// past the root, from the values that the root is made of.

/// The root that a node squares: by `square`, or as the product of two roots that are recorded
/// alike. Nothing for other nodes. Also nothing if a value that would be passed over is one of the
/// variables of the differentiation, since its derivative is wanted too.
std::optional<NodeId> root_squared_by(const Tape& tape, NodeId node,
                                      std::span<const Var> variables);

/// The VJP of the root's square, where `p` is of the root's node, with the adjoint of the square.
void pull_back_squared_root(const Pullback& p);

}  // namespace palimpsest
