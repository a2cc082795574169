#pragma once

#include <optional>
#include <string>

#include "tests/programs/program_checks.h"

namespace palimpsest {

/// Differentiates the program on a tape, by a `Program` and by an `Execution`, and destroys these.
/// Then reads gradients, outputs and reports, gives the gradients to an optimizer, and uses `Var`s
/// of the tapes that are gone. On another tape, uses `Var`s that the bodies of a checkpoint and of
/// a loop have leaked. On further tapes, in a precision, the function of a derivative asks for
/// values. Returns what is wrong: results that differ, or a use of a `Var` that is no
/// `TapeError`.
std::optional<std::string> problem_of_lifetimes(const ProgramText& text, const Results& expected);

}  // namespace palimpsest
