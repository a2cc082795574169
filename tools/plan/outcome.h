#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoint/plan.h"
#include "tools/plan/arguments.h"

namespace palimpsest::tool {

/// The graph to plan and what is known of it beforehand.
struct Subject {
  Graph graph;
  Bytes keep_all_peak;
};
Subject read_subject(const Arguments& arguments);

/// `part` over `whole`, in per cent.
double percent_of(Bytes part, Bytes whole);

/// What planning comes to, or a schedule.
struct Outcome {
  std::string planner;
  Bytes budget = 0;
  Bytes peak = 0;  ///< bytes of the arena
  double cost_ratio = 1;
  std::uint32_t recomputed = 0;
  double planning_seconds = 0;
  double lower_bound = 1;  ///< what no schedule within the budget can have as `cost_ratio`
  /// How much the cost is above the least possible, at most.
  double gap() const { return cost_ratio / lower_bound - 1; }
};

/// The least cost possible within `budget`, over that of one pass.
double lower_bound_ratio(const Graph& graph, Bytes budget);

/// Members named as those of `Outcome`, and its gap.
nlohmann::ordered_json to_json(const Outcome& outcome);

/// A plan, timed, with its lower bound left out. Throws `BudgetError`.
struct Planned {
  Outcome outcome;
  Plan plan;
};
Planned plan_with(const Graph& graph, const std::string& name, const Planner& planner, Bytes budget,
                  std::span<const Proposal> known = {});

/// The planner called `name`, with the time limit given if it heeds one. Throws `ArgumentError`
/// when none of the planners asked for does.
PlannerPtr planner_for(const std::string& name, const Arguments& arguments);

/// `1.50 GiB (1610612736 bytes)`.
std::string in_full(Bytes bytes);
/// With so many decimals.
std::string decimal(double value, int decimals);

using Rows = std::vector<std::vector<std::string>>;
/// Rows of text in columns as wide as they must be.
std::string in_columns(const Rows& rows);

}  // namespace palimpsest::tool
