#pragma once

#include "strategy/compile/form_choice.h"
#include "strategy/compile/program_cache.h"

namespace palimpsest {

/// A plan in the cache, and the form of the program that it is for.
struct PlannedVersion {
  GraphForm form;
  std::shared_ptr<const Lowered> lowered;
  PlanVersionPtr version;
  double keep_all_cost = 0;  ///< as `Plan::keep_all_cost`
  bool is_new = false;       ///< no plan for this planner and budget was known before
};
inline double cost(const PlannedVersion& found) { return found.version->plan->simulation.cost; }

/// The passes `lower` and `plan` of `compile`: lowers a program to the forms that are considered,
/// and plans each in the budget of the options, until none can cost less than the best.
///
/// With `fast_first`, takes a plan that was made before or that a fast planner finds, in whichever
/// form; the whole planner is asked only where there is none. Which form is best is decided once
/// more when the plan has served for long enough.
OrRefusal<PlannedVersion> plan_program(CachedProgram& program, const Tape& tape,
                                       const ProgramSpec& spec, const RunOptions& options,
                                       bool fast_first);

}  // namespace palimpsest
