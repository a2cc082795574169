#pragma once

#include <string>

#include "tests/programs/program_checks.h"

namespace palimpsest {

/// Computes the gradients of a program, with journals of its loops, in runs that end in the middle.
/// A run is stopped, or it ends by an exception as a killed process would. Compares what the last
/// run finds with the first of the expected results. Returns the problem; empty if there is none,
/// and for programs without loops that can have journals.
std::string problem_of_resuming(const ProgramText& text, const Cell& cell, const Results& expected);

}  // namespace palimpsest
