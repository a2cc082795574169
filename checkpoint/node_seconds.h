#pragma once

#include "autodiff/tape.h"
#include "checkpoint/machine.h"

namespace palimpsest {

/// What running a node takes on one thread, by the rates that the machine has for such work.
double seconds_of(const NodeView& node, const Machine& machine);

/// The same where the node is run with others that it carries out, at `cost` together.
double seconds_of(const NodeView& node, const Cost& cost, const Machine& machine);

/// Of that, what a kernel that does not know 16-bit types takes to widen and narrow them. Nothing
/// where the machine has no rate for it.
double widening_seconds(const NodeView& node, const Machine& machine);

}  // namespace palimpsest
