#pragma once

#include <span>

#include "autodiff/tape.h"
#include "checkpoint/machine.h"

namespace palimpsest {

/// The floating type that a node computes in; f32 where none is.
DType computed_in(const NodeView& node);

/// What running a node takes on one thread, by the rates that the machine has for such work.
double seconds_of(const NodeView& node, const Machine& machine);

/// The same where the node is run with others that it carries out, at `cost` together.
double seconds_of(const NodeView& node, const Cost& cost, const Machine& machine);

/// The same for nodes that are run as one, which moves so many bytes.
double seconds_of(const Tape& tape, std::span<const NodeId> nodes, double bytes,
                  const Machine& machine);

}  // namespace palimpsest
