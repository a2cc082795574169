#include "tools/plan/outcome.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "checkpoint/lower_bound.h"
#include "checkpoint/planners.h"
#include "checkpoint/planning_files.h"

namespace palimpsest::tool {

Subject read_subject(const Arguments& arguments) {
  Graph graph = read_graph(arguments.graph);
  const Bytes keep_all_peak = make_plan(graph, *keep_all()).predicted_peak();
  return {std::move(graph), keep_all_peak};
}

double percent_of(Bytes part, Bytes whole) {
  return whole > 0 ? 100 * static_cast<double>(part) / static_cast<double>(whole) : 100;
}

double lower_bound_ratio(const Graph& graph, Bytes budget) {
  const double one_pass = graph.one_pass_cost();
  return one_pass > 0 ? lower_bound(graph, budget) / one_pass : 1;
}

nlohmann::ordered_json to_json(const Outcome& outcome) {
  return {{"planner", outcome.planner},
          {"budget", outcome.budget},
          {"peak", outcome.peak},
          {"cost_ratio", outcome.cost_ratio},
          {"lower_bound", outcome.lower_bound},
          {"gap", outcome.gap()},
          {"recomputed", outcome.recomputed},
          {"planning_seconds", outcome.planning_seconds}};
}

Planned plan_with(const Graph& graph, const std::string& name, const Planner& planner, Bytes budget,
                  std::span<const Proposal> known) {
  const auto start = std::chrono::steady_clock::now();
  Plan plan = make_plan(graph, planner, budget, known);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  Outcome outcome{name,
                  budget,
                  plan.predicted_peak(),
                  plan.simulation.cost_ratio(),
                  plan.simulation.recomputed,
                  took.count()};
  return {std::move(outcome), std::move(plan)};
}

PlannerPtr planner_for(const std::string& name, const Arguments& arguments) {
  const auto timed = [](const std::string& planner) { return named_planner(planner).timed; };
  const auto& all = arguments.planners;
  // When no planner supports a limit, passing it on raises an error about the first one.
  const bool heeded = std::any_of(all.begin(), all.end(), timed);
  return planner_named(name, heeded && !timed(name) ? std::nullopt : arguments.seconds);
}

std::string in_full(Bytes bytes) {
  const std::string text = format_bytes(bytes);
  return bytes < 1024 ? text : text + " (" + std::to_string(bytes) + " bytes)";
}

std::string decimal(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

std::string in_columns(const Rows& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += row[i];
      if (i + 1 < row.size()) text.append(widths[i] - row[i].size() + 2, ' ');
    }
    text += '\n';
  }
  return text;
}

}  // namespace palimpsest::tool
