#pragma once

#include <cmath>
#include <functional>
#include <optional>

#include "strategy/base/options.h"
#include "strategy/compile/fusion/lowered_store.h"
#include "strategy/compile/kept_plannings.h"

namespace palimpsest {

/// The planner asked for, or the one there is without.
const PlannerPtr& planner_of(const RunOptions& options);
/// True when a run is to take what memory there is.
bool takes_free_memory(const RunOptions& options);
/// The only form that the planner has schedules for; none: it plans any. Throws `ScheduleError`
/// when the options forbid that form.
std::optional<GraphForm> only_form(const RunOptions& options);
/// True when elementwise nodes may run in groups.
bool may_fuse(const RunOptions& options);
/// True when what is computed may differ from what was recorded.
bool may_simplify(const RunOptions& options);

/// A plan, and what it is a plan for.
struct Planned {
  std::shared_ptr<const Lowered> lowered;
  LoweredStore::Form form;
  Plan plan;
};
inline double cost(const Planned& planned) { return planned.plan.simulation.cost; }

/// True when what costs at least `one_pass_cost()` cannot cost less than what was found.
template <class T, class C>
bool suffices(const T& found, const RunOptions& options, C one_pass_cost) {
  if (std::isinf(cost(found))) return false;
  return options.memory_budget == unlimited || cost(found) <= one_pass_cost();
}

/// What `first()` finds where that `is_enough`. Else, and where it does not fit the budget, both
/// are asked and what costs less is taken, so that a larger budget never costs more.
template <class First, class Enough, class Second>
auto cheaper_of(First first, Enough is_enough, Second second) {
  std::optional<decltype(first())> found;
  std::optional<BudgetError> refused;
  try {
    found.emplace(first());
  } catch (const BudgetError& error) {
    refused = error;
  }
  if (found && is_enough(*found)) return *found;
  try {
    auto other = second();
    return found && cost(*found) <= cost(other) ? *found : other;
  } catch (const BudgetError& error) {
    if (found) return *found;
    throw refused->smallest_feasible() < error.smallest_feasible() ? *refused : error;
  }
}

/// Seconds of running once what a program is lowered to in a form.
using OnePassCost = std::function<double(LoweredStore::Form)>;

/// The least of a program that is not simplified, whatever its form.
double recorded_one_pass_cost(const RunOptions& options, const OnePassCost& one_pass_cost);

/// Seconds of running the program in the form that it has without a budget, by a planner that
/// recomputes nothing then.
double keep_all_cost(const RunOptions& options, const LoweredStore::Program& program,
                     const OnePassCost& one_pass_cost);

/// What `plan(form)` finds for a program, simplified or not, with its elementwise nodes in groups
/// or, where that is not allowed, each by itself. Groups hold all they make at once: they may not
/// fit the budget, or cost more than single nodes.
template <class P>
auto plan_either_form(const RunOptions& options, bool simplify, P plan,
                      const OnePassCost& one_pass_cost) {
  using Form = LoweredStore::Form;
  const auto apart = [&] { return plan(Form{false, simplify}); };
  if (!may_fuse(options)) return apart();
  return cheaper_of([&] { return plan(Form{true, simplify}); },
                    [&](const auto& found) {
                      return suffices(found, options,
                                      [&] { return one_pass_cost({false, simplify}); });
                    },
                    apart);
}

/// `plan_either_form` of a program that is simplified, where that is allowed, or not: what is
/// computed once may be held for longer.
template <class P>
auto plan_some_form(const RunOptions& options, const LoweredStore::Program& program, P plan,
                    const OnePassCost& one_pass_cost) {
  if (const auto form = only_form(options)) return plan(*form);
  const bool simplify = may_simplify(options) && program.is_simplified();
  const auto once = [&] { return plan_either_form(options, simplify, plan, one_pass_cost); };
  if (!simplify || !program.holds_longer()) return once();
  return cheaper_of(
      once,
      [&](const auto& found) {
        return cost(found) <= recorded_one_pass_cost(options, one_pass_cost);
      },
      [&] { return plan_either_form(options, false, plan, one_pass_cost); });
}

/// Plans what a tape holds. Throws `BudgetError`. Plannings, if any are given, are kept for other
/// budgets.
Planned plan_tape(const Tape& tape, const LoweredStore::Request& request, const RunOptions& options,
                  KeptPlannings* plannings = nullptr);

/// Seconds of the plan that `plan_tape` makes, infinite where it throws `BudgetError`: takes less
/// time, since no smallest budget is named.
double planned_seconds(const Tape& tape, const LoweredStore::Request& request,
                       const RunOptions& options);

/// The budget within which the program runs fastest on the machine of the options, by
/// `budget_for_caches`: their own on one without caches.
Bytes cache_budget(const Tape& tape, const LoweredStore::Request& request,
                   const RunOptions& options);

}  // namespace palimpsest
