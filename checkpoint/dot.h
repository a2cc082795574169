#pragma once

#include <iosfwd>

#include "autodiff/export.h"
#include "checkpoint/plan.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Writes the tape in Graphviz's language, coloured by what a schedule of its graph does.
/// Parameters are blue, other leaves grey, kept nodes green, recomputed nodes orange with their
/// count, and nodes that do not run white. Draw it with `dot -Tsvg`. Throws `ArgumentError` for a
/// schedule that runs nodes that the tape does not have.
///
/// The schedule of `plan_backward` names groups and adjoint nodes, which are no longer on the tape.
/// Draw it with `write_dot(stream, loss)` in strategy/backward.h.
std::ostream& write_dot(std::ostream& stream, const Tape& tape, const Schedule& schedule);
/// Overload that takes how often each node of the tape runs, as in `Plan::runs`. Throws
/// `ArgumentError` for the wrong number of nodes.
std::ostream& write_dot(std::ostream& stream, const Tape& tape,
                        std::span<const std::uint32_t> runs);

}  // namespace palimpsest
