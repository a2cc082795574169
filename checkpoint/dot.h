#pragma once

#include <iosfwd>

#include "checkpoint/plan.h"

namespace palimpsest {

/// Writes the tape in Graphviz's language, coloured by what a schedule of its graph does:
/// parameters blue, other leaves grey, kept nodes green, recomputed nodes orange, with their count,
/// and nodes that are not run white. Draw it with `dot -Tsvg`.
/// Throws `ArgumentError` for a schedule that runs nodes that the tape does not have.
///
/// The schedule of `plan_backward` is one of groups and of adjoint nodes, which are no longer on
/// the tape: draw it with `write_dot(stream, loss)` in strategy/backward.h.
std::ostream& write_dot(std::ostream& stream, const Tape& tape, const Schedule& schedule);
/// The same of how often each node of the tape runs, as in `Plan::runs`.
std::ostream& write_dot(std::ostream& stream, const Tape& tape,
                        std::span<const std::uint32_t> runs);

}  // namespace palimpsest
