#include "checkpoint/plan.h"

#include <algorithm>
#include <cstdio>

#include "checkpoint/planners.h"

namespace palimpsest {

namespace {

struct Candidate {
  Schedule schedule;
  Simulation simulation;
};

std::vector<Candidate> measure(const Graph& graph, std::vector<Schedule> schedules) {
  std::vector<Candidate> candidates;
  candidates.reserve(schedules.size());
  for (Schedule& schedule : schedules) {
    Simulation simulation = simulate(graph, schedule);
    candidates.push_back({std::move(schedule), std::move(simulation)});
  }
  return candidates;
}

/// Size of the smallest layout among the candidates.
Bytes smallest_layout(const Graph& graph, std::vector<Candidate>& candidates, Bytes best) {
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.simulation.peak < b.simulation.peak;
  });
  for (const Candidate& candidate : candidates) {
    if (candidate.simulation.peak >= best) break;  // a layout is never smaller than the peak
    best = std::min(best, lay_out(graph, candidate.schedule).size);
  }
  return best;
}

std::string percent(double ratio) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * ratio);
  return text;
}

}  // namespace

namespace {

std::string both_ways(Bytes bytes) {
  return format_bytes(bytes) + " (" + std::to_string(bytes) + " bytes)";
}

}  // namespace

BudgetError::BudgetError(Bytes budget, Bytes smallest_feasible, const std::string& planner,
                         bool own_limit)
    : EnvironmentError("[plan] no plan of '" + planner + "' fits " +
                       (own_limit ? "its own limit of " : "a budget of ") + both_ways(budget) +
                       "; the smallest budget found is " + both_ways(smallest_feasible) +
                       (own_limit ? ", which the planner's settings must allow" : "")),
      budget_(budget),
      smallest_feasible_(smallest_feasible) {}

bool Plan::recomputes(NodeId node) const {
  return std::count(schedule.steps.begin(), schedule.steps.end(), Step::compute(node)) > 1;
}

std::string Plan::summary() const {
  const double share =
      keep_all_peak > 0 ? static_cast<double>(predicted_peak()) / static_cast<double>(keep_all_peak)
                        : 1.0;
  return planner + ": peak " + format_bytes(predicted_peak()) + " (" + percent(share) +
         " of keep-all), " + std::to_string(simulation.recomputed) + " of " +
         std::to_string(simulation.computed) + " steps recompute, " + percent(compute_overhead()) +
         " extra work";
}

Plan make_plan(const Graph& graph, const Planner& planner, Bytes budget) {
  if (graph.node_count() == 0) {
    throw ArgumentError("[plan] the graph is empty; record something first");
  }
  Schedule everything = std::move(keep_all()->propose(graph, unlimited).front());
  Layout everything_layout = lay_out(graph, everything);
  const Bytes keep_all_peak = everything_layout.size;
  const Bytes limit = std::min(budget, planner.limit(keep_all_peak, budget));
  const auto plan = [&](Schedule schedule, Simulation simulation, Layout layout) {
    return Plan{std::move(schedule), std::move(simulation), std::move(layout),
                planner.name(),      keep_all_peak,         budget};
  };
  if (planner.accepts_keep_all() && keep_all_peak <= limit) {
    Simulation simulation = simulate(graph, everything);
    return plan(std::move(everything), std::move(simulation), std::move(everything_layout));
  }

  std::vector<Candidate> candidates = measure(graph, planner.propose(graph, limit));
  internal_check(!candidates.empty(), "a planner proposed nothing");
  std::stable_sort(
      candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
        return a.simulation.cost < b.simulation.cost ||
               (a.simulation.cost == b.simulation.cost && a.simulation.peak < b.simulation.peak);
      });
  for (Candidate& candidate : candidates) {
    if (candidate.simulation.peak > limit) continue;
    Layout layout = lay_out(graph, candidate.schedule);
    if (layout.size > limit) continue;
    return plan(std::move(candidate.schedule), std::move(candidate.simulation), std::move(layout));
  }
  const Bytes most = planner.accepts_keep_all() ? keep_all_peak : unlimited;
  throw BudgetError(limit, smallest_layout(graph, candidates, most), planner.name(),
                    limit < budget);
}

Bytes smallest_budget(const Graph& graph, const Planner& planner) {
  try {
    return make_plan(graph, planner, 0).predicted_peak();
  } catch (const BudgetError& error) {
    return error.smallest_feasible();
  }
}

}  // namespace palimpsest
