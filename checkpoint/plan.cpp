#include "checkpoint/plan.h"

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "checkpoint/front.h"
#include "checkpoint/planners.h"
#include "checkpoint/planners/lowest.h"

namespace palimpsest {

namespace {

/// The best of each planner, from schedules in order of cost.
std::vector<Candidate> best_of_each(const std::vector<Measured>& measured, Bytes limit,
                                    double one_pass) {
  std::vector<Candidate> best;
  for (const auto& [proposal, peak, cost] : measured) {
    const Candidate candidate{proposal.planner, peak, one_pass > 0 ? cost / one_pass : 1.0,
                              peak <= limit};
    const auto known = std::find_if(best.begin(), best.end(), [&](const Candidate& other) {
      return other.planner == candidate.planner;
    });
    if (known == best.end()) {
      best.push_back(candidate);
    } else if (!known->fits && (candidate.fits || candidate.peak < known->peak)) {
      *known = candidate;
    }
  }
  std::stable_sort(best.begin(), best.end(), [](const Candidate& a, const Candidate& b) {
    return a.fits != b.fits ? a.fits : a.cost_ratio < b.cost_ratio;
  });
  return best;
}

std::string percent(double ratio) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * ratio);
  return text;
}

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

Bytes Plan::bytes_saved() const { return std::max<Bytes>(keep_all_peak - predicted_peak(), 0); }

bool Plan::recomputes(NodeId node) const {
  if (!runs.empty()) return node < runs.size() && runs[node] > 1;
  return std::count(schedule.steps.begin(), schedule.steps.end(), Step::compute(node)) > 1;
}

std::string Plan::summary() const {
  return summarize(planner, predicted_peak(), std::max(keep_all_peak, predicted_peak()),
                   simulation.computed, simulation.recomputed, compute_overhead());
}

std::string summarize(const std::string& planner, Bytes peak, Bytes keep_all_peak,
                      std::uint32_t computed, std::uint32_t recomputed, double overhead) {
  const double share =
      keep_all_peak > 0 ? static_cast<double>(peak) / static_cast<double>(keep_all_peak) : 1.0;
  return planner + ": peak " + format_bytes(peak) + " (" + percent(share) + " of keep-all), " +
         std::to_string(recomputed) + " of " + std::to_string(computed) + " steps recompute, " +
         percent(overhead) + " extra work";
}

namespace {

/// The cheapest schedule with a layout within the limit, from schedules in order of cost, and that
/// layout.
std::optional<std::pair<std::size_t, Layout>> cheapest_laid_out(const Graph& graph,
                                                                std::span<const Measured> measured,
                                                                Bytes limit, bool hurried) {
  std::optional<std::pair<std::size_t, Layout>> found;
  std::vector<std::pair<std::size_t, Bytes>> cheaper;  // and what a quick layout takes
  for (std::size_t i = 0; i < measured.size() && !found; ++i) {
    if (measured[i].peak > limit) continue;
    Layout layout = lay_out_quickly(graph, measured[i].proposal.schedule, limit);
    if (layout.size <= limit) {
      found = {i, std::move(layout)};
    } else {
      cheaper.emplace_back(i, layout.size);
    }
  }
  // Trouble is taken where it may help, which is no less often with a larger limit, and for all
  // where nothing fits without it.
  const Bytes near = limit / std::max<Bytes>(2, graph.node_count() / 16);
  for (const auto& [at, size] : cheaper) {
    if (found && (hurried || size - limit > near)) continue;
    Layout layout = lay_out(graph, measured[at].proposal.schedule, limit);
    if (layout.size <= limit) return {{at, std::move(layout)}};
  }
  if (found && !hurried) {
    Layout smaller = lay_out(graph, measured[found->first].proposal.schedule, limit);
    if (smaller.size < found->second.size) found->second = std::move(smaller);
  }
  return found;
}

/// A plan, or all that there is to say of why there is none.
struct Attempt {
  std::optional<Plan> plan;
  Bytes limit = 0;
  Bytes smallest = 0;  ///< budget that was found, where it was looked for
};

Attempt attempt_packed(const Graph& graph, const Planner& planner, Bytes budget,
                       std::span<const Proposal> known, bool hurried) {
  if (graph.node_count() == 0) {
    throw ArgumentError("[plan] the graph is empty; record something first");
  }
  Schedule everything = std::move(keep_all()->propose(graph, unlimited).front().schedule);
  // Without a budget it is final.
  const bool quickly = hurried && budget != unlimited;
  Layout roomy = quickly ? lay_out_quickly(graph, everything, unlimited)
                         : lay_out(graph, everything, unlimited);
  const Bytes keep_all_peak = roomy.size;
  const Bytes limit = std::min(budget, planner.limit(keep_all_peak, budget));
  if (planner.accepts_keep_all()) {
    Simulation simulation = simulate(graph, everything);
    if (roomy.size > limit && simulation.peak <= limit) roomy = lay_out(graph, everything, limit);
    if (roomy.size <= limit) {
      return {Plan{std::move(everything), std::move(simulation), std::move(roomy), planner.name(),
                   keep_all_peak, budget}};
    }
  }
  everything = {};  // planning can use the memory
  roomy = {};

  std::vector<Proposal> proposals = planner.propose(graph, limit);
  internal_check(!proposals.empty(), "a planner proposed nothing");
  proposals.insert(proposals.end(), known.begin(), known.end());
  std::vector<Measured> measured = measure(graph, std::move(proposals), planner.name());
  std::size_t looked_at = 0;
  const auto plan_from_rest = [&]() -> std::optional<Plan> {
    const std::span<Measured> rest = std::span(measured).subspan(looked_at);
    looked_at = measured.size();
    cheapest_first(rest);
    auto found = cheapest_laid_out(graph, rest, limit, hurried);
    if (!found) return {};
    const Proposal proposal = rest[found->first].proposal;
    Simulation simulation = simulate(graph, proposal.schedule);
    cheapest_first(measured);
    std::vector<Candidate> candidates = best_of_each(measured, limit, simulation.one_pass_cost);
    return Plan{proposal.schedule,    std::move(simulation), std::move(found->second),
                proposal.planner,     keep_all_peak,         budget,
                std::move(candidates)};
  };
  if (std::optional<Plan> plan = plan_from_rest()) return {std::move(plan)};

  Bytes smallest = planner.accepts_keep_all() ? keep_all_peak : unlimited;
  if (std::optional<Lowest> lowest = planner.lowest(graph, limit)) {
    smallest = std::min(smallest, lowest->size);
    std::ranges::move(measure(graph, std::move(lowest->proposals), planner.name()),
                      std::back_inserter(measured));
    if (std::optional<Plan> plan = plan_from_rest()) return {std::move(plan)};
  } else if (!hurried) {
    smallest = std::min(smallest, smallest_layout(graph, measured).size);
  }
  return {{}, limit, smallest};
}

/// The same with serial nodes apart where there is room for that.
Attempt attempt(const Graph& graph, const Planner& planner, Bytes budget,
                std::span<const Proposal> known, bool hurried) {
  Attempt result = attempt_packed(graph, planner, budget, known, hurried);
  if (!result.plan) return result;
  const Bytes limit = std::min(budget, planner.limit(result.plan->keep_all_peak, budget));
  std::optional<Layout> apart =
      lay_out_apart(graph, result.plan->schedule, result.plan->layout.size, limit);
  if (apart) result.plan->layout = std::move(*apart);
  return result;
}

}  // namespace

Plan make_plan(const Graph& graph, const Planner& planner, Bytes budget,
               std::span<const Proposal> known) {
  Attempt result = attempt(graph, planner, budget, known, false);
  if (result.plan) return std::move(*result.plan);
  throw BudgetError(result.limit, result.smallest, planner.name(), result.limit < budget);
}

std::optional<Plan> find_plan(const Graph& graph, const Planner& planner, Bytes budget,
                              std::span<const Proposal> known) {
  return attempt(graph, planner, budget, known, true).plan;
}

Bytes smallest_budget(const Graph& graph, const Planner& planner) {
  try {
    return make_plan(graph, planner, 0).predicted_peak();
  } catch (const BudgetError& error) {
    return error.smallest_feasible();
  }
}

}  // namespace palimpsest
