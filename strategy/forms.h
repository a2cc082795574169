#pragma once

#include <optional>

#include "strategy/fusion/lowered_store.h"
#include "strategy/options.h"

namespace palimpsest {

/// Options as they are carried out. Throws `ArgumentError` for a negative budget or number of
/// threads.
void check(const RunOptions& options);
/// Throws `ArgumentError` for a negative number.
int checked_threads(int threads);
/// The planner asked for, or the one there is without.
const PlannerPtr& planner_of(const RunOptions& options);
/// True when elementwise nodes may run in groups.
bool may_fuse(const RunOptions& options);

/// A plan, and what it is a plan for.
struct Planned {
  std::shared_ptr<const Lowered> lowered;
  Plan plan;
};
inline double cost(const Planned& planned) { return planned.plan.simulation.cost; }

/// True when single nodes cannot cost less than what was found for groups.
template <class T, class C>
bool suffices(const T& together, const RunOptions& options, C one_pass_cost) {
  return options.memory_budget == unlimited || cost(together) <= one_pass_cost();
}

/// What `plan(fuse)` finds for a program with its elementwise nodes in groups or, where that is not
/// allowed, as it was recorded. Groups hold all they make at once: where they do not fit the
/// budget, or cost more than one pass of single nodes, both are planned, and what costs less is
/// taken, so that a larger budget never costs more.
template <class P, class C>
auto plan_either_form(const RunOptions& options, P plan, C one_pass_cost) {
  if (!may_fuse(options)) return plan(false);
  std::optional<decltype(plan(true))> together;
  std::optional<BudgetError> refused;
  try {
    together.emplace(plan(true));
  } catch (const BudgetError& error) {
    refused = error;
  }
  if (together && suffices(*together, options, one_pass_cost)) return *together;
  try {
    auto apart = plan(false);
    return together && cost(*together) <= cost(apart) ? *together : apart;
  } catch (const BudgetError& error) {
    if (together) return *together;
    throw refused->smallest_feasible() < error.smallest_feasible() ? *refused : error;
  }
}

/// Plans what a tape holds. Throws `BudgetError`.
Planned plan_tape(const Tape& tape, const LoweredStore::Request& request,
                  const RunOptions& options);

}  // namespace palimpsest
