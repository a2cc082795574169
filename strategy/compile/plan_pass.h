#pragma once

#include "strategy/compile/form_choice.h"
#include "strategy/compile/program_cache.h"

namespace palimpsest {

/// A plan in the cache, and the form of the program that it plans.
struct PlannedVersion {
  GraphForm form;
  std::shared_ptr<const Lowered> lowered;
  PlanVersionPtr version;
  double keep_all_cost = 0;  ///< as `Plan::keep_all_cost`
  bool is_new = false;       ///< no plan for this planner and budget was known before
};
inline double cost(const PlannedVersion& found) { return found.version->plan->simulation.cost; }

/// The passes `lower` and `plan` of `compile`. Lowers a program to the forms to consider and plans
/// each within the budget of the options. Stops when no remaining form can cost less than the best.
///
/// With `fast_first`, takes a plan that is known or that a fast planner finds, in either form. The
/// whole planner runs only if there is none. After the plan has served for long enough, the best
/// form is chosen once more.
OrRefusal<PlannedVersion> plan_program(CachedProgram& program, const Tape& tape,
                                       const ProgramSpec& spec, const RunOptions& options,
                                       bool fast_first);

}  // namespace palimpsest
