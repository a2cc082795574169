#include <iostream>

#include "autodiff/files.h"
#include "checkpoint/planning_files.h"
#include "strategy/explain/explain_text.h"
#include "strategy/explain/page.h"
#include "tools/plan/commands.h"
#include "tools/plan/outcome.h"
#include "tools/plan/progress.h"

namespace palimpsest::tool {

namespace {

Rows rows_about(const Subject& subject, const Arguments& arguments) {
  return {{"graph", arguments.graph + ", " + std::to_string(subject.graph.node_count()) + " nodes"},
          {"resident", in_full(subject.graph.resident()) + ", outside the budget"},
          {"keep-all peak", in_full(subject.keep_all_peak)}};
}

void add_rows(Rows& rows, const Subject& subject, const Outcome& outcome,
              const Simulation& simulation) {
  rows.push_back({"peak", in_full(outcome.peak) + ", " +
                              decimal(percent_of(outcome.peak, subject.keep_all_peak), 1) +
                              " % of keep-all"});
  rows.push_back({"live bytes", in_full(simulation.peak) + " at most, in an arena " +
                                    decimal(percent_of(outcome.peak, simulation.peak) - 100, 2) +
                                    " % larger"});
  rows.push_back({"cost", decimal(outcome.cost_ratio, 4) + " of one pass"});
  rows.push_back(
      {"lower bound", decimal(outcome.lower_bound, 4) + " of one pass; the cost is at most " +
                          decimal(100 * outcome.gap(), 2) + " % above the least possible"});
  rows.push_back({"recomputed", std::to_string(simulation.recomputed) + " of " +
                                    std::to_string(simulation.computed) + " nodes run"});
}

void add_members(nlohmann::ordered_json& json, const Subject& subject) {
  json["keep_all_peak"] = subject.keep_all_peak;
  json["resident"] = subject.graph.resident();
}

/// The candidates of the plan, or the plan itself when no others were considered.
std::vector<Candidate> candidates_of(const Plan& plan) {
  if (!plan.candidates.empty()) return plan.candidates;
  return {{plan.planner, plan.simulation.peak, plan.simulation.cost_ratio(), true}};
}

/// What keeps a candidate from being the plan; empty if only its cost does.
std::string why_not(const Candidate& candidate) {
  if (candidate.fits) return {};
  if (candidate.layout == 0) return ", too many";
  return ", but placed in memory they take " + format_bytes(candidate.layout) + ", too many";
}

Explanation explanation_of(const Subject& subject, const PlannerPtr& planner, const Plan& plan) {
  return {std::make_shared<const Graph>(subject.graph), std::make_shared<const Plan>(plan), planner,
          NodeLabels::of(subject.graph)};
}

}  // namespace

void plan(const Arguments& arguments) {
  const std::string& name = arguments.planners.front();
  const PlannerPtr planner = planner_for(name, arguments);
  const Subject subject = read_subject(arguments);
  const Progress progress;
  progress.show("planning with " + name + " ...");
  auto [outcome, plan] =
      plan_with(subject.graph, name, *planner, arguments.budget.of(subject.keep_all_peak));
  progress.show("bounding the cost of all schedules ...");
  outcome.lower_bound = lower_bound_ratio(subject.graph, outcome.budget);
  progress.show("looking for the smallest budget of " + name + " ...");
  const Bytes smallest = smallest_budget(subject.graph, *planner);
  progress.show("");
  if (!arguments.schedule.empty()) write_schedule(plan.schedule, arguments.schedule);
  if (!arguments.html.empty()) {
    const Explanation explanation = explanation_of(subject, planner, plan);
    write_file(arguments.html, page_of(explanation, "Plan of " + arguments.graph), "html");
  }

  if (arguments.json) {
    nlohmann::ordered_json json = to_json(outcome);
    json["minimum_budget"] = smallest;
    add_members(json, subject);
    json["candidates"] = nlohmann::ordered_json::array();
    for (const Candidate& candidate : candidates_of(plan)) {
      json["candidates"].push_back({{"planner", candidate.planner},
                                    {"peak", candidate.peak},
                                    {"cost_ratio", candidate.cost_ratio},
                                    {"fits", candidate.fits}});
      if (candidate.layout > 0) json["candidates"].back()["layout"] = candidate.layout;
    }
    std::cout << json.dump(2) << '\n';
    return;
  }
  Rows rows = rows_about(subject, arguments);
  rows.push_back({"smallest budget", in_full(smallest) + ", found by " + name});
  rows.push_back({"budget", in_full(outcome.budget)});
  add_rows(rows, subject, outcome, plan.simulation);
  rows.push_back({"planning", decimal(outcome.planning_seconds, 3) + " s, by " + name});
  if (plan.candidates.size() > 1) {
    const char* label = "candidates";
    for (const Candidate& candidate : plan.candidates) {
      rows.push_back({label, candidate.planner + ": cost " + decimal(candidate.cost_ratio, 4) +
                                 ", live bytes " + format_bytes(candidate.peak) +
                                 why_not(candidate)});
      label = "";
    }
  }
  std::cout << in_columns(rows);
  if (arguments.explain) {
    std::cout << '\n' << explain(explanation_of(subject, planner, plan));
  }
}

void check(const Arguments& arguments) {
  const Subject subject = read_subject(arguments);
  const Schedule schedule = read_schedule(arguments.check);
  require_graph(schedule, subject.graph);
  const Simulation simulation = simulate(subject.graph, schedule);
  Outcome outcome{arguments.check, arguments.budget.of(subject.keep_all_peak),
                  lay_out(subject.graph, schedule).size, simulation.cost_ratio(),
                  simulation.recomputed};
  if (arguments.budget_given && outcome.peak > outcome.budget) {
    throw EnvironmentError("[check] " + arguments.check + " takes " + in_full(outcome.peak) +
                           ", more than the budget of " + in_full(outcome.budget) +
                           "; raise the budget, or plan a schedule for it");
  }
  outcome.lower_bound =
      lower_bound_ratio(subject.graph, arguments.budget_given ? outcome.budget : outcome.peak);
  if (arguments.json) {
    nlohmann::ordered_json json = to_json(outcome);
    for (const char* key : {"planner", "planning_seconds"}) json.erase(key);
    if (!arguments.budget_given) json.erase("budget");
    add_members(json, subject);
    std::cout << json.dump(2) << '\n';
    return;
  }
  Rows rows = rows_about(subject, arguments);
  rows.push_back({"schedule", arguments.check + ", valid, " +
                                  std::to_string(schedule.steps.size()) + " steps"});
  if (arguments.budget_given) rows.push_back({"budget", in_full(outcome.budget)});
  add_rows(rows, subject, outcome, simulation);
  std::cout << in_columns(rows);
}

}  // namespace palimpsest::tool
