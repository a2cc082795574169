#pragma once

#include <optional>
#include <string>

#include "tests/programs/program_checks.h"

namespace palimpsest {

/// Runs the program with a function of the user that misbehaves: once, it changes the tape for
/// which it is called, on its thread or on another one. The seed draws the function, the change,
/// the evaluator and the number of threads. Returns what is wrong: a change that is no `TapeError`
/// where it must be one, or results that differ, in the same run or in the next one.
std::optional<std::string> problem_of_misuse(const ProgramText& text, const Results& expected);

}  // namespace palimpsest
