#pragma once

#include "strategy/compile/fusion/groups.h"

namespace palimpsest {

/// Adds each reduction of several columns, such as a sum over a leading axis, to the group that
/// makes its input. A group whose reductions have another shape stays as it is. This runs after
/// sibling fusion: the loss and its adjoint are better one pass than a sum over the adjoint.
void join_column_reductions(const Tape& tape, const AccessMaps& access_maps, NodeId boundary,
                            Units& units);

}  // namespace palimpsest
