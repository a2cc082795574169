#pragma once

#include <optional>
#include <string>

#include "tests/programs/program_checks.h"
#include "tests/strategy/export/exported_runs.h"

namespace palimpsest {

/// A call of an exported program with its recorded parameters.
CRun c_run_of(const Program& program, ExportedC exported);

/// Exports the program with its gradients as C, with as much memory as it likes and within the
/// smallest budget that it names. Compiles and runs both without optimization and by one of
/// `c_builds`, which must give the same bits. Compares their results with the expected ones.
/// Returns what is wrong; nothing for a program that C cannot express, or without a C compiler.
std::optional<std::string> problem_in_c(const ProgramText& text, const Results& expected);

}  // namespace palimpsest
