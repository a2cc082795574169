#pragma once

#include <iosfwd>

#include "checkpoint/plan.h"

namespace palimpsest {

/// Writes the tape in Graphviz's language, coloured by what a schedule of its graph does:
/// parameters blue, other leaves grey, kept nodes green, recomputed nodes orange, with their count,
/// and nodes that are not run white. Draw it with `dot -Tsvg`.
std::ostream& write_dot(std::ostream& stream, const Tape& tape, const Schedule& schedule);

}  // namespace palimpsest
