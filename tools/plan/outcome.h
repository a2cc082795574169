#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoint/plan.h"
#include "tools/plan/arguments.h"

namespace palimpsest::tool {

/// The graph to plan, and its keep-all peak.
struct Subject {
  Graph graph;
  Bytes keep_all_peak;
};
Subject read_subject(const Arguments& arguments);

/// `part` over `whole`, in per cent; 100 when `whole` is 0.
double percent_of(Bytes part, Bytes whole);

/// The result of planning, or of checking a schedule.
struct Outcome {
  std::string planner;
  Bytes budget = 0;
  Bytes peak = 0;  ///< bytes of the arena
  double cost_ratio = 1;
  std::uint32_t recomputed = 0;
  double planning_seconds = 0;
  double lower_bound = 1;  ///< lower bound of `cost_ratio` for all schedules within the budget
  /// Relative distance of the cost from the lower bound.
  double gap() const { return cost_ratio / lower_bound - 1; }
};

/// A lower bound of the cost within `budget`, relative to one pass.
double lower_bound_ratio(const Graph& graph, Bytes budget);

/// The members of `Outcome` and its gap.
nlohmann::ordered_json to_json(const Outcome& outcome);

/// A plan with its planning time; the outcome has no lower bound yet. Throws `BudgetError`.
struct Planned {
  Outcome outcome;
  Plan plan;
};
Planned plan_with(const Graph& graph, const std::string& name, const Planner& planner, Bytes budget,
                  std::span<const Proposal> known = {});

/// The planner called `name`, with the given time limit if it supports one. Throws `ArgumentError`
/// when none of the requested planners does.
PlannerPtr planner_for(const std::string& name, const Arguments& arguments);

/// `1.50 GiB (1610612736 bytes)`.
std::string in_full(Bytes bytes);
/// The value with `decimals` decimals.
std::string decimal(double value, int decimals);

using Rows = std::vector<std::vector<std::string>>;
/// Aligns rows of text in columns.
std::string in_columns(const Rows& rows);

}  // namespace palimpsest::tool
