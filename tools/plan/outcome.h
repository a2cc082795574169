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
};

/// Members named as those of `Outcome`.
nlohmann::ordered_json to_json(const Outcome& outcome);

/// A plan, timed. Throws `BudgetError`.
struct Planned {
  Outcome outcome;
  Plan plan;
};
Planned plan_with(const Graph& graph, const std::string& name, const Planner& planner,
                  Bytes budget);

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
