#pragma once

#include <span>

#include "autodiff/tape.h"
#include "checkpoint/machine.h"

namespace palimpsest {

/// The floating-point type that a node computes in; f32 when it has none.
DType computed_in(const NodeView& node);

/// Seconds that a node takes on one thread, by the machine's rates for that kind of work.
double seconds_of(const NodeView& node, const Machine& machine);

/// Overload for a node that runs together with others. `cost` is their cost together.
double seconds_of(const NodeView& node, const Cost& cost, const Machine& machine);

/// Overload for nodes that run as one fused kernel, which moves so many bytes.
double seconds_of(const Tape& tape, std::span<const NodeId> nodes, double bytes,
                  const Machine& machine);

}  // namespace palimpsest
