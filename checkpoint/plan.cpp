#include "checkpoint/plan.h"

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "checkpoint/front.h"
#include "checkpoint/planners.h"
#include "checkpoint/planners/lowest.h"
#include "checkpoint/roomy_layout.h"

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
                         const std::string& remedy)
    : EnvironmentError("[plan] no plan of '" + planner + "' fits " +
                       (remedy.empty() ? "a budget of " : "its own limit of ") + both_ways(budget) +
                       "; the smallest budget found is " + both_ways(smallest_feasible) +
                       (remedy.empty() ? "" : ", which no budget allows: " + remedy)),
      budget_(budget),
      smallest_feasible_(smallest_feasible),
      own_limit_(!remedy.empty()) {}

Bytes Plan::bytes_saved() const { return std::max<Bytes>(keep_all_peak - predicted_peak(), 0); }

Bytes Plan::metadata_bytes() const {
  const std::size_t bytes =
      schedule.steps.size() * sizeof(Step) + simulation.timeline.size() * sizeof(Bytes) +
      layout.intervals.size() * sizeof(Interval) + runs.size() * sizeof(std::uint32_t);
  return static_cast<Bytes>(bytes);
}

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

/// The cheapest schedule with a layout within a limit. Where a schedule fits one limit it is chosen
/// from within every larger one too.
class CheapestLaidOut {
 public:
  struct Found {
    std::size_t at;
    Layout layout;
  };

  /// Of schedules in order of cost.
  CheapestLaidOut(const Graph& graph, std::span<const Measured> measured, Bytes limit)
      : graph_(graph), measured_(measured), limit_(limit) {}

  std::optional<Found> find(bool hurried) const {
    std::optional<Found> found;
    std::vector<std::pair<std::size_t, Bytes>> cheaper;  // and what a quick layout takes
    for (std::size_t i = 0; i < measured_.size() && !found; ++i) {
      if (measured_[i].peak > limit_) continue;
      Layout layout = lay_out_quickly(graph_, measured_[i].proposal.schedule, limit_);
      if (layout.size <= limit_) {
        found = {i, std::move(layout)};
      } else {
        cheaper.emplace_back(i, layout.size);
      }
    }
    // Trouble is taken where it may help, and where a smaller limit may leave nothing else.
    const Bytes near = hurried ? 0 : limit_ / std::max<Bytes>(2, graph_.node_count() / 16);
    std::optional<Bytes> easiest;  // found out when it is needed
    for (const auto& [at, size] : cheaper) {
      if (found && size - limit_ > near) {
        if (measured_[at].peak >= found->layout.size) continue;
        if (!easiest) easiest = smallest_quick_layout();
        if (measured_[at].peak >= *easiest) continue;
      }
      Layout layout = lay_out(graph_, measured_[at].proposal.schedule, limit_);
      if (layout.size <= limit_) return {{at, std::move(layout)}};
    }
    if (found && !hurried) {
      Layout smaller = lay_out(graph_, measured_[found->at].proposal.schedule, limit_);
      if (smaller.size < found->layout.size) found->layout = std::move(smaller);
    }
    return found;
  }

 private:
  /// The smallest limit that some schedule fits without trouble: below it, trouble is taken over
  /// all.
  Bytes smallest_quick_layout() const {
    std::vector<const Measured*> order;
    for (const Measured& one : measured_) order.push_back(&one);
    std::ranges::stable_sort(order, {}, [](const Measured* one) { return one->peak; });
    Bytes smallest = unlimited;
    for (const Measured* one : order) {
      if (one->peak >= smallest) break;  // a layout is never smaller than the peak
      smallest =
          std::min(smallest, lay_out_quickly(graph_, one->proposal.schedule, one->peak).size);
    }
    return smallest;
  }

  const Graph& graph_;
  std::span<const Measured> measured_;
  Bytes limit_;
};

/// A plan, or all that there is to say of why there is none.
struct Attempt {
  std::optional<Plan> plan;
  Bytes limit = 0;
  Bytes smallest = 0;  ///< budget that was found, where it was looked for
  Bytes keep_all_peak = 0;
  bool certain = false;  ///< the planner has promised a plan for that budget
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
    auto found = CheapestLaidOut(graph, rest, limit).find(hurried);
    if (!found) return {};
    const Proposal proposal = rest[found->at].proposal;
    Simulation simulation = simulate(graph, proposal.schedule);
    cheapest_first(measured);
    std::vector<Candidate> candidates = best_of_each(measured, limit, simulation.one_pass_cost);
    return Plan{proposal.schedule,    std::move(simulation), std::move(found->layout),
                proposal.planner,     keep_all_peak,         budget,
                std::move(candidates)};
  };
  if (std::optional<Plan> plan = plan_from_rest()) return {std::move(plan)};

  Bytes smallest = planner.accepts_keep_all() ? keep_all_peak : unlimited;
  std::optional<Lowest> lowest = planner.lowest(graph, limit);
  if (lowest) {
    smallest = std::min(smallest, lowest->size);
    std::ranges::move(measure(graph, std::move(lowest->proposals), planner.name()),
                      std::back_inserter(measured));
    if (std::optional<Plan> plan = plan_from_rest()) return {std::move(plan)};
  } else if (!hurried) {
    smallest = std::min(smallest, smallest_layout(graph, measured).size);
  }
  return {{}, limit, smallest, keep_all_peak, lowest.has_value()};
}

/// The same with serial nodes apart, and with fewer waits for memory, where there is room for that.
/// Within a limit that is as much as the limit allows, and no more than there would be without it.
Attempt attempt(const Graph& graph, const Planner& planner, Bytes budget,
                std::span<const Proposal> known, bool hurried) {
  Attempt result = attempt_packed(graph, planner, budget, known, hurried);
  if (!result.plan) return result;
  const Bytes limit = std::min(budget, planner.limit(result.plan->keep_all_peak, budget));
  std::optional<Layout> apart =
      lay_out_apart(graph, result.plan->schedule, result.plan->layout.size, limit);
  if (apart) result.plan->layout = std::move(*apart);
  Layout& layout = result.plan->layout;
  const Bytes packed =
      limit == unlimited ? layout.size : std::max(layout.size, result.plan->keep_all_peak);
  std::optional<Layout> roomy =
      roomy_layout(graph, result.plan->schedule, layout, std::min(limit, with_room(graph, packed)));
  if (roomy) layout = std::move(*roomy);
  return result;
}

/// The smallest budget of an attempt that failed, such that planning for it succeeds: a planner
/// that plans for its budget may not find again what it found for another one.
Bytes smallest_that_works(const Graph& graph, const Planner& planner, const Attempt& failed) {
  constexpr int most_tries = 6;
  Bytes smallest = failed.smallest;
  if (failed.certain) return smallest;
  for (int tries = 0; tries < most_tries; ++tries) {
    if (planner.limit(failed.keep_all_peak, smallest) < smallest) return smallest;
    const Attempt again = attempt_packed(graph, planner, smallest, {}, false);
    if (again.plan) return smallest;
    smallest = std::max(again.smallest, smallest + 1);
  }
  return planner.accepts_keep_all() ? failed.keep_all_peak : smallest;
}

/// The plan, saying which graph its schedule is of.
Plan labelled(Plan plan, const Graph& graph) {
  plan.schedule.graph = ScheduledGraph::of(graph);
  return plan;
}

}  // namespace

Plan make_plan(const Graph& graph, const Planner& planner, Bytes budget,
               std::span<const Proposal> known) {
  Attempt result = attempt(graph, planner, budget, known, false);
  if (result.plan) return labelled(std::move(*result.plan), graph);
  const Bytes smallest = smallest_that_works(graph, planner, result);
  const Bytes allowed = planner.limit(result.keep_all_peak, smallest);
  const bool own_limit = allowed < smallest;
  throw BudgetError(own_limit ? allowed : budget, smallest, planner.name(),
                    own_limit ? planner.how_to_allow(smallest, result.keep_all_peak) : "");
}

std::optional<Plan> find_plan(const Graph& graph, const Planner& planner, Bytes budget,
                              std::span<const Proposal> known) {
  std::optional<Plan> plan = attempt(graph, planner, budget, known, true).plan;
  if (plan) plan = labelled(std::move(*plan), graph);
  return plan;
}

Bytes smallest_budget(const Graph& graph, const Planner& planner) {
  try {
    return make_plan(graph, planner, 0).predicted_peak();
  } catch (const BudgetError& error) {
    return error.smallest_feasible();
  }
}

}  // namespace palimpsest
