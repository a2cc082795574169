#pragma once

#include <optional>
#include <string>

#include "strategy/compile/native/program_source.h"

namespace palimpsest {

/// C statements for an instruction that is not a fused group, where they are short: copies of a few
/// stretches, a short sum, a small product. They have the bits of the operation. `at` holds the
/// addresses of places. Appends what they need to the table and the products of `to`. Empty if the
/// executor has to run the instruction.
std::optional<std::string> step_source(const Instructions& instructions,
                                       const Instructions::Instruction& step, const Tape& tape,
                                       ProgramSource& to);

}  // namespace palimpsest
