#include "strategy/compile/forms.h"

#include <algorithm>
#include <limits>

#include "checkpoint/cache_seconds.h"
#include "checkpoint/lower_bound.h"
#include "checkpoint/planners.h"
#include "checkpoint/planning.h"
#include "strategy/compile/cache_budget.h"

namespace palimpsest {
namespace {

struct Seconds {
  double cost;
};
double cost(const Seconds& seconds) { return seconds.cost; }

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
  const std::optional<GraphForm> form = planner_of(options)->form();
  const auto require = [&](bool wanted, bool allowed, const char* what, const char* option) {
    if (!wanted || (allowed && !options.anomaly)) return;
    throw ScheduleError("[given] the schedule was made for a " + std::string(what) +
                        " graph, which RunOptions::" + (options.anomaly ? "anomaly" : option) +
                        " forbids; plan a graph that write_graph writes with these options");
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

double recorded_one_pass_cost(const RunOptions& options, const OnePassCost& one_pass_cost) {
  const double apart = one_pass_cost({false, false});
  return may_fuse(options) ? std::min(apart, one_pass_cost({true, false})) : apart;
}

double keep_all_cost(const RunOptions& options, const LoweredStore::Program& program,
                     const OnePassCost& one_pass_cost) {
  const bool fuse = may_fuse(options);
  const bool simplify = may_simplify(options) && program.is_simplified();
  const double once = one_pass_cost({fuse, simplify});
  if (!simplify || !program.holds_longer()) return once;
  return std::min(once, one_pass_cost({fuse, false}));
}

Planned plan_tape(const Tape& tape, const LoweredStore::Request& request, const RunOptions& options,
                  KeptPlannings* plannings) {
  KeptPlannings own(0);  // keeps none
  if (plannings == nullptr) plannings = &own;
  LoweredStore store;
  LoweredStore::Program& program = *store.find_or_make(tape, request);
  const auto plan = [&](LoweredStore::Form form) {
    const std::shared_ptr<const Lowered>& lowered = program.get(tape, request, form);
    return Planned{lowered, form,
                   plannings->with(graph_in(lowered), planner_of(options), [&](Planning& planning) {
                     return planning.make(options.memory_budget);
                   })};
  };
  const OnePassCost one_pass_cost = [&](LoweredStore::Form form) {
    return program.get(tape, request, form)->one_pass_cost();
  };
  Planned found = plan_some_form(options, program, plan, one_pass_cost);
  found.plan.keep_all_cost = keep_all_cost(options, program, one_pass_cost);
  found.plan.runs = found.lowered->runs(found.plan.schedule, tape.node_count());
  return found;
}

double planned_seconds(const Tape& tape, const LoweredStore::Request& request,
                       const RunOptions& options) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  LoweredStore store;
  LoweredStore::Program& program = *store.find_or_make(tape, request);
  const auto plan = [&](LoweredStore::Form form) -> Seconds {
    const Graph& graph = program.get(tape, request, form)->graph();
    if (peak_lower_bound(graph) > options.memory_budget) return {infinite};
    const std::optional<Plan> found =
        Planning(graph, *planner_of(options)).look(options.memory_budget);
    return {found ? found->simulation.cost : infinite};
  };
  const OnePassCost one_pass_cost = [&](LoweredStore::Form form) {
    return program.get(tape, request, form)->one_pass_cost();
  };
  return plan_some_form(options, program, plan, one_pass_cost).cost;
}

Bytes cache_budget(const Tape& tape, const LoweredStore::Request& request,
                   const RunOptions& options) {
  if (!has_caches(options.machine)) return options.memory_budget;
  // Of one form: what it shows is how much is gained by staying in the caches.
  LoweredStore store;
  LoweredStore::Program& program = *store.find_or_make(tape, request);
  const LoweredStore::Form form{may_fuse(options), may_simplify(options)};
  const Graph& graph = program.get(tape, request, form)->graph();
  const auto plan = [&](Bytes budget) -> std::optional<WithinBudget> {
    const std::optional<Plan> found = find_plan(graph, *planner_of(options), budget);
    if (!found) return {};
    return WithinBudget{found->predicted_peak(), found->simulation.cost,
                        seconds_in_caches(graph, *found, options.machine)};
  };
  return budget_for_caches(options.machine, options.memory_budget, plan);
}

}  // namespace palimpsest
