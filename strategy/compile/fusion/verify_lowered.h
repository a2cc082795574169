#pragma once

#include <span>

#include "strategy/compile/fusion/lowered.h"

namespace palimpsest {

/// An executable specification of a lowered graph. `lowered` was made from `tape` for `targets`,
/// with `simplification`. Throws `InternalError` naming the violated property:
///
/// - Each value of the graph represents one value of the tape, and no two represent the same one.
///   It has that value's bytes, unless it is a view or is stored elsewhere.
/// - A unit's inputs are made by earlier units, or are supplied.
/// - A unit's outputs are outputs of the nodes that it runs. Each input of these nodes is made by
///   one of them or read by the unit. Or data movement nodes make it from such values and
///   constants. The unit reads nothing else. If it is not a group, its first inputs are those of
///   its node.
/// - Each target is present as the value that represents it, and the graph keeps that until the
///   end.
///
/// Builds with assertions call it for every lowered graph.
void verify(const Lowered& lowered, const Tape& tape, std::span<const ValueId> targets,
            const Simplification& simplification);

}  // namespace palimpsest
