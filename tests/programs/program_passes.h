#pragma once

#include <optional>
#include <string>

#include "tests/programs/program_checks.h"

namespace palimpsest {

/// Lowers the program in each form, plans it with and without a budget and makes instructions of
/// the plans; then plans it with half of its values present. Returns what breaks the specification
/// of a pass (strategy/compile/fusion/verify_lowered.h, strategy/compile/verify_plan.h).
std::optional<std::string> broken_pass_in(const ProgramText& text);

/// Plans the program within ever larger budgets by planners whose plans get no dearer then, and
/// runs small ones by `backward`; returns what gets dearer.
std::optional<std::string> dearer_within_more(const ProgramText& text);

/// Writes the graph of the program for a budget of this share, plans it as `palimpsest-plan` does,
/// writes the schedule, and runs backward by what it reads; returns what is wrong.
std::optional<std::string> problem_through_files(const ProgramText& text, double share,
                                                 const Results& expected);

}  // namespace palimpsest
