#include <algorithm>
#include <iostream>

#include "autodiff/files.h"
#include "strategy/base/svg.h"
#include "tools/plan/commands.h"
#include "tools/plan/outcome.h"
#include "tools/plan/progress.h"

namespace palimpsest::tool {

namespace {

/// The results of one planner over all budgets.
struct Swept {
  std::string name;
  PlannerPtr planner;
  Bytes smallest = 0;
  std::optional<Outcome> at_smallest = {};            // start of the curve
  std::vector<std::optional<Outcome>> outcomes = {};  // by budget; empty where no plan fits
  std::vector<Proposal> found = {};                   // reused for smaller budgets
};

/// A budget for all planners, with the lower bound of its cost ratio.
struct Level {
  Bytes budget;
  double lower_bound;
};

std::vector<Level> levels_between(const Graph& graph, Bytes first, Bytes last, int count) {
  std::vector<Level> levels;
  for (int k = 0; k < count; ++k) {
    const double part = static_cast<double>(k) / (count - 1);
    const Bytes budget = first + static_cast<Bytes>(part * static_cast<double>(last - first));
    levels.push_back({budget, lower_bound_ratio(graph, budget)});
  }
  return levels;
}

std::optional<Outcome> try_plan(const Graph& graph, Swept& swept, Bytes budget) {
  try {
    Planned planned = plan_with(graph, swept.name, *swept.planner, budget, swept.found);
    swept.found.emplace_back(std::move(planned.plan.schedule), planned.plan.planner);
    return planned.outcome;
  } catch (const BudgetError&) {
    return {};
  }
}

std::string table(const std::vector<Swept>& all, const std::vector<Level>& levels,
                  const Subject& subject) {
  Rows rows{{"budget", "of keep-all"}};
  for (const Swept& swept : all) rows[0].push_back(swept.name);
  rows[0].push_back("lower bound");
  for (std::size_t k = 0; k < levels.size(); ++k) {
    auto& row = rows.emplace_back();
    row = {format_bytes(levels[k].budget),
           decimal(percent_of(levels[k].budget, subject.keep_all_peak), 1) + " %"};
    for (const Swept& swept : all) {
      row.push_back(swept.outcomes[k] ? decimal(swept.outcomes[k]->cost_ratio, 4) : "-");
    }
    row.push_back(decimal(levels[k].lower_bound, 4));
  }
  auto& last = rows.emplace_back();
  last = {"smallest", ""};
  for (const Swept& swept : all) last.push_back(format_bytes(swept.smallest));
  return in_columns(rows);
}

nlohmann::ordered_json to_json(const std::vector<Swept>& all, const Subject& subject) {
  nlohmann::ordered_json json{{"keep_all_peak", subject.keep_all_peak},
                              {"resident", subject.graph.resident()},
                              {"curves", nlohmann::ordered_json::array()}};
  for (const Swept& swept : all) {
    nlohmann::ordered_json points = nlohmann::ordered_json::array();
    if (swept.at_smallest) points.push_back(tool::to_json(*swept.at_smallest));
    for (const auto& outcome : swept.outcomes) {
      if (outcome) points.push_back(tool::to_json(*outcome));
    }
    json["curves"].push_back({{"planner", swept.name},
                              {"minimum_budget", swept.smallest},
                              {"points", std::move(points)}});
  }
  return json;
}

std::string picture(const std::vector<Swept>& all, const std::vector<Level>& levels,
                    const std::string& title) {
  Chart chart{title, "budget, MiB", "extra work, % of one pass", {}, {}};
  const auto point = [](Bytes budget, double ratio) {
    return std::pair(static_cast<double>(budget) / (1 << 20), 100 * (ratio - 1));
  };
  for (const Swept& swept : all) {
    Chart::Curve curve{swept.name, {}};
    const auto add = [&](const std::optional<Outcome>& outcome) {
      if (outcome) curve.points.push_back(point(outcome->budget, outcome->cost_ratio));
    };
    add(swept.at_smallest);
    std::for_each(swept.outcomes.begin(), swept.outcomes.end(), add);
    chart.curves.push_back(std::move(curve));
  }
  Chart::Curve bound{"lower bound", {}};
  for (const Level& level : levels) bound.points.push_back(point(level.budget, level.lower_bound));
  chart.curves.push_back(std::move(bound));
  return render(chart);
}

}  // namespace

void sweep(const Arguments& arguments) {
  std::vector<Swept> all;
  for (const std::string& name : arguments.planners) {
    all.push_back({name, planner_for(name, arguments)});
  }
  const Subject subject = read_subject(arguments);
  const Progress progress;
  Bytes smallest = subject.keep_all_peak;
  for (Swept& swept : all) {
    progress.show(swept.name + ": looking for the smallest budget ...");
    swept.smallest = smallest_budget(subject.graph, *swept.planner);
    swept.at_smallest = try_plan(subject.graph, swept, swept.smallest);
    if (swept.at_smallest) {
      swept.at_smallest->lower_bound = lower_bound_ratio(subject.graph, swept.smallest);
    }
    smallest = std::min(smallest, swept.smallest);
  }
  progress.show("bounding the cost of all schedules ...");
  const std::vector<Level> levels =
      levels_between(subject.graph, smallest, subject.keep_all_peak, arguments.sweep);
  for (Swept& swept : all) {
    for (const Level& level : levels) {
      progress.show(swept.name + ": budget " + std::to_string(swept.outcomes.size() + 1) + " of " +
                    std::to_string(levels.size()) + " ...");
      auto& outcome = swept.outcomes.emplace_back(try_plan(subject.graph, swept, level.budget));
      if (outcome) outcome->lower_bound = level.lower_bound;
    }
  }
  progress.show("");
  if (!arguments.svg.empty())
    write_file(arguments.svg, picture(all, levels, arguments.graph), "sweep");
  if (arguments.json) {
    std::cout << to_json(all, subject).dump(2) << '\n';
  } else {
    std::cout << table(all, levels, subject);
  }
}

}  // namespace palimpsest::tool
