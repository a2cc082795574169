#pragma once

#include <optional>
#include <string>

#include "tests/programs/program_checks.h"

namespace palimpsest {

/// Exports the program with its gradients as C, with as much memory as it likes and within the
/// smallest budget that it names. Compiles and runs both, and compares their results with the
/// expected ones. Returns what is wrong; nothing for a program that C cannot express, or without a
/// C compiler.
std::optional<std::string> problem_in_c(const ProgramText& text, const Results& expected);

}  // namespace palimpsest
