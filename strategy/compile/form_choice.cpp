#include "strategy/compile/form_choice.h"

#include <algorithm>
#include <limits>

#include "checkpoint/cache_seconds.h"
#include "checkpoint/lower_bound.h"
#include "checkpoint/planners.h"
#include "checkpoint/planners/planning.h"
#include "strategy/compile/cache_budget.h"

namespace palimpsest {
namespace {

/// A plan, if one fits.
struct Looked {
  std::optional<Planned> planned = {};
};
double cost(const Looked& looked) {
  return looked.planned ? cost(*looked.planned) : std::numeric_limits<double>::infinity();
}

}  // namespace

const PlannerPtr& planner_of(const RunOptions& options) {
  // A search before the first run would not pay when it is the only one.
  static const PlannerPtr standard = automatic({.moves = 0});
  return options.planner != nullptr ? options.planner : standard;
}

bool takes_free_memory(const RunOptions& options) {
  return options.memory_budget == unlimited && options.planner == nullptr;
}

std::optional<GraphForm> only_form(const RunOptions& options) {
  const std::optional<GraphForm> form = form_of(*planner_of(options));
  const auto require = [&](bool wanted, bool allowed, const char* what, const char* option) {
    if (!wanted || (allowed && !options.anomaly)) return;
    throw ScheduleError("[given] the schedule was made for a " + std::string(what) +
                        " graph, which RunOptions::" + (options.anomaly ? "anomaly" : option) +
                        " forbids; plan the graph that write_graph writes with these options");
  };
  if (form) {
    require(form->fuse, options.fuse, "fused", "fuse");
    require(form->simplify, options.simplify, "simplified", "simplify");
  }
  return form;
}

bool may_fuse(const RunOptions& options) {
  if (const auto form = only_form(options)) return form->fuse;
  return options.fuse && !options.anomaly;
}

bool may_simplify(const RunOptions& options) {
  if (const auto form = only_form(options)) return form->simplify;
  return options.simplify && !options.anomaly;
}

std::vector<GraphForm> forms_to_compare(const RunOptions& options, const LoweredForms& forms) {
  if (const auto form = only_form(options)) return {*form};
  std::vector<GraphForm> list;
  const auto add = [&](bool simplify) {
    if (may_fuse(options)) list.push_back({true, simplify});
    list.push_back({false, simplify});
  };
  const bool simplify = may_simplify(options) && forms.is_simplified();
  add(simplify);
  if (simplify && forms.holds_longer()) add(false);
  return list;
}

double recorded_one_pass_cost(const RunOptions& options, const OnePassCost& one_pass_cost) {
  const double unfused = one_pass_cost({false, false});
  return may_fuse(options) ? std::min(unfused, one_pass_cost({true, false})) : unfused;
}

double keep_all_cost(const RunOptions& options, const LoweredForms& forms,
                     const OnePassCost& one_pass_cost) {
  const bool fuse = may_fuse(options);
  const bool simplify = may_simplify(options) && forms.is_simplified();
  const double simplified = one_pass_cost({fuse, simplify});
  if (!simplify || !forms.holds_longer()) return simplified;
  return std::min(simplified, one_pass_cost({fuse, false}));
}

OrRefusal<Planned> plan_tape(const Tape& tape, const ProgramSpec& spec, const RunOptions& options) {
  LoweredForms forms(tape, spec);
  Bytes named = unlimited;  // by the refusals of other forms; 0 once a form fits
  const auto plan = [&](GraphForm form) -> OrRefusal<Planned> {
    const std::shared_ptr<const Lowered>& lowered = forms.get(tape, spec, form);
    OrRefusal<Plan> found =
        Planning(lowered->graph(), *planner_of(options)).plan(options.memory_budget, {}, named);
    named = found ? 0 : std::min(named, found.refusal().smallest_feasible());
    if (!found) return found.refusal();
    return Planned{lowered, form, std::move(*found)};
  };
  const OnePassCost one_pass_cost = [&](GraphForm form) {
    return forms.get(tape, spec, form)->one_pass_cost();
  };
  return plan_some_form(options, forms, plan, one_pass_cost);
}

std::optional<Planned> look_at_tape(const Tape& tape, const ProgramSpec& spec,
                                    const RunOptions& options) {
  LoweredForms forms(tape, spec);
  const auto plan = [&](GraphForm form) -> OrRefusal<Looked> {
    const std::shared_ptr<const Lowered>& lowered = forms.get(tape, spec, form);
    if (peak_bound(lowered->graph()).bytes > options.memory_budget) return Looked{};
    std::optional<Plan> found =
        Planning(lowered->graph(), *planner_of(options)).look(options.memory_budget);
    if (!found) return Looked{};
    return Looked{Planned{lowered, form, *std::move(found)}};
  };
  const OnePassCost one_pass_cost = [&](GraphForm form) {
    return forms.get(tape, spec, form)->one_pass_cost();
  };
  return plan_some_form(options, forms, plan, one_pass_cost)->planned;
}

Bytes peak_bound_of(const Tape& tape, const ProgramSpec& spec, const RunOptions& options) {
  LoweredForms forms(tape, spec);
  Bytes least = unlimited;
  for (const GraphForm form : forms_to_compare(options, forms)) {
    least = std::min(least, peak_bound(forms.get(tape, spec, form)->graph()).bytes);
  }
  return least;
}

KeepAll keep_all_of(const Tape& tape, const ProgramSpec& spec, const RunOptions& options) {
  LoweredForms forms(tape, spec);
  RunOptions once = options;
  once.fuse = may_fuse(options);
  once.simplify = may_simplify(options);
  once.planner = keep_all();
  once.memory_budget = unlimited;
  const auto plan = [&](GraphForm form) -> OrRefusal<Planned> {
    const std::shared_ptr<const Lowered>& lowered = forms.get(tape, spec, form);
    return Planned{lowered, form, make_plan(lowered->graph(), *once.planner)};
  };
  const OnePassCost one_pass_cost = [&](GraphForm form) {
    return forms.get(tape, spec, form)->one_pass_cost();
  };
  const OrRefusal<Planned> planned = plan_some_form(once, forms, plan, one_pass_cost);
  return {planned->plan.keep_all_peak, keep_all_cost(once, forms, one_pass_cost)};
}

Bytes cache_budget(const Tape& tape, const ProgramSpec& spec, LoweredForms& forms,
                   const RunOptions& options) {
  if (!has_caches(options.machine)) return options.memory_budget;
  // One form is enough to show the gain of staying in the caches.
  const Graph& graph = forms.get(tape, spec, {may_fuse(options), may_simplify(options)})->graph();
  const auto plan = [&](Bytes budget) -> std::optional<WithinBudget> {
    const std::optional<Plan> found = find_plan(graph, *planner_of(options), budget);
    if (!found) return {};
    return WithinBudget{found->predicted_peak(), found->simulation.cost,
                        seconds_in_caches(graph, *found, options.machine)};
  };
  return budget_for_caches(options.machine, options.memory_budget, plan);
}

}  // namespace palimpsest
