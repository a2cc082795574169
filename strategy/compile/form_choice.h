#pragma once

#include <cmath>
#include <functional>
#include <optional>
#include <vector>

#include "checkpoint/or_refusal.h"
#include "strategy/base/options.h"
#include "strategy/compile/lowered_forms.h"

namespace palimpsest {

/// The planner of the options, or the default one.
const PlannerPtr& planner_of(const RunOptions& options);
/// True when only the free memory limits the run.
bool takes_free_memory(const RunOptions& options);
/// The only form for which the planner has schedules. Empty for a planner of any form. Throws
/// `ScheduleError` when the options forbid that form.
std::optional<GraphForm> only_form(const RunOptions& options);
/// True when elementwise nodes may be fused.
bool may_fuse(const RunOptions& options);
/// True when common subexpressions and constants may be removed.
bool may_simplify(const RunOptions& options);

/// The forms that `plan_some_form` may compare, in its order.
std::vector<GraphForm> forms_to_compare(const RunOptions& options, const LoweredForms& forms);

/// Cost in seconds of running a form once.
using OnePassCost = std::function<double(GraphForm)>;

/// The smallest cost of a form that is not simplified.
double recorded_one_pass_cost(const RunOptions& options, const OnePassCost& one_pass_cost);

/// Seconds of a run that recomputes nothing, in the form that the program has without a budget.
double keep_all_cost(const RunOptions& options, const LoweredForms& forms,
                     const OnePassCost& one_pass_cost);

/// A plan, and the lowered program that it is for.
struct Planned {
  std::shared_ptr<const Lowered> lowered;
  GraphForm form;
  Plan plan;
};
inline double cost(const Planned& planned) { return planned.plan.simulation.cost; }

/// True when nothing that costs at least `one_pass_cost()` can cost less than `found`.
template <class T, class C>
bool suffices(const T& found, const RunOptions& options, C one_pass_cost) {
  if (std::isinf(cost(found))) return false;
  return options.memory_budget == unlimited || cost(found) <= one_pass_cost();
}

/// Returns `first()` if it succeeds and `is_enough` accepts it. Otherwise returns the cheaper one
/// of `first()` and `second()`, so that a larger budget never costs more. If both are refused,
/// returns the refusal with the smaller feasible budget.
template <class First, class Enough, class Second>
auto cheaper_of(First first, Enough is_enough, Second second) {
  auto found = first();
  if (found && is_enough(*found)) return found;
  auto other = second();
  if (found && other) return cost(*found) <= cost(*other) ? found : other;
  if (found || other) return found ? found : other;
  const bool first_is_less =
      found.refusal().smallest_feasible() < other.refusal().smallest_feasible();
  return first_is_less ? found : other;
}

/// Plans a program by `plan(form)`, which returns an `OrRefusal`: fused or, where fusion is not
/// permitted, unfused. A fused group holds all its outputs at once. It may exceed the budget or
/// cost more than single nodes. Both forms are tried in that case.
template <class P>
auto plan_either_form(const RunOptions& options, bool simplify, P plan,
                      const OnePassCost& one_pass_cost) {
  const auto unfused = [&] { return plan(GraphForm{false, simplify}); };
  if (!may_fuse(options)) return unfused();
  return cheaper_of([&] { return plan(GraphForm{true, simplify}); },
                    [&](const auto& found) {
                      return suffices(found, options,
                                      [&] { return one_pass_cost({false, simplify}); });
                    },
                    unfused);
}

/// `plan_either_form` of the simplified program, where that is permitted. Simplifying may hold
/// values for longer, so the recorded program is also tried when it may cost less.
template <class P>
auto plan_some_form(const RunOptions& options, const LoweredForms& forms, P plan,
                    const OnePassCost& one_pass_cost) {
  if (const auto form = only_form(options)) return plan(*form);
  const bool simplify = may_simplify(options) && forms.is_simplified();
  const auto simplified = [&] { return plan_either_form(options, simplify, plan, one_pass_cost); };
  if (!simplify || !forms.holds_longer()) return simplified();
  return cheaper_of(
      simplified,
      [&](const auto& found) {
        return cost(found) <= recorded_one_pass_cost(options, one_pass_cost);
      },
      [&] { return plan_either_form(options, false, plan, one_pass_cost); });
}

/// Plans the program of a tape in its best form, without a cache. For searches that compare
/// budgets; `compile` makes programs.
OrRefusal<Planned> plan_tape(const Tape& tape, const ProgramSpec& spec, const RunOptions& options);

/// The plan that `plan_tape` makes; empty if it refuses the budget. Faster than `plan_tape`, since
/// it finds no smallest budget.
std::optional<Planned> look_at_tape(const Tape& tape, const ProgramSpec& spec,
                                    const RunOptions& options);

/// A lower bound, in bytes, on the peak of any schedule of the program of a tape, in any form.
Bytes peak_bound_of(const Tape& tape, const ProgramSpec& spec, const RunOptions& options);

/// Memory and time of a run that recomputes nothing.
struct KeepAll {
  Bytes peak = 0;
  double seconds = 0;
};
/// Those of the program of a tape, in the form that it has without a budget.
KeepAll keep_all_of(const Tape& tape, const ProgramSpec& spec, const RunOptions& options);

/// The budget within which the program runs fastest on the machine of the options (see
/// `budget_for_caches`). On a machine without caches, the budget of the options.
Bytes cache_budget(const Tape& tape, const ProgramSpec& spec, LoweredForms& forms,
                   const RunOptions& options);

}  // namespace palimpsest
