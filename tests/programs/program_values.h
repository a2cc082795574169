#pragma once

#include <optional>
#include <string>

#include "tests/programs/program_results.h"

namespace palimpsest {

/// Evaluates the losses and the last value of a program, without derivatives, within several
/// budgets. Returns the problem, if there is one: other bits, more bytes than predicted or allowed,
/// or a named budget that does not suffice.
std::optional<std::string> problem_of_values(const ProgramText& text, const Results& expected);

}  // namespace palimpsest
