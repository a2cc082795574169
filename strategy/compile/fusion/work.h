#pragma once

#include <string>

#include "strategy/compile/fusion/lowered.h"

namespace palimpsest {

/// The operation that a unit carries out, or those of a group with `+` between them.
std::string operation_of(const Tape& tape, const Lowered& lowered, NodeId unit);

/// What a unit computes: the same text for the same operations on operands of the same bytes.
std::string work_of(const Tape& tape, const Lowered& lowered, NodeId unit);

/// The same of a recorded node that runs by itself.
std::string work_of(const Tape& tape, NodeId node);

/// Floating-point operations and bytes of a unit.
Cost cost_of_unit(const Tape& tape, const Lowered& lowered, NodeId unit);

}  // namespace palimpsest
