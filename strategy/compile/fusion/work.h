#pragma once

#include <string>

#include "strategy/compile/fusion/lowered.h"

namespace palimpsest {

/// The name of a unit's operation; for a group the names of all, joined by `+`.
std::string operation_of(const Tape& tape, const Lowered& lowered, NodeId unit);

/// A key for what a unit computes: equal for equal operations on operands of equal bytes.
std::string work_of(const Tape& tape, const Lowered& lowered, NodeId unit);

/// Likewise for a recorded node that runs by itself.
std::string work_of(const Tape& tape, NodeId node);

/// Floating-point operations and bytes of a unit.
Cost cost_of_unit(const Tape& tape, const Lowered& lowered, NodeId unit);

}  // namespace palimpsest
