#pragma once

#include <optional>
#include <string>

#include "tests/programs/program_checks.h"

namespace palimpsest {

/// Lowers the program in each form, plans it with and without a budget, and makes instructions from
/// the plans. Then plans it with half of its values present. Returns violations of the
/// specification of a pass (strategy/compile/fusion/verify_lowered.h,
/// strategy/compile/verify_plan.h).
std::optional<std::string> broken_pass_in(const ProgramText& text);

/// Plans the program within increasing budgets by planners whose plans must not get more expensive
/// then, and runs small programs by `backward`. Returns what gets more expensive.
std::optional<std::string> dearer_within_more(const ProgramText& text);

/// Writes the graph of the program for a budget of this share, plans it as `palimpsest-plan` does,
/// writes the schedule, and runs backward with the schedule read back. Returns what is wrong.
std::optional<std::string> problem_through_files(const ProgramText& text, double share,
                                                 const Results& expected);

}  // namespace palimpsest
