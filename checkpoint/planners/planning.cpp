#include "checkpoint/planners/planning.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "autodiff/in_use.h"
#include "checkpoint/planners.h"
#include "checkpoint/planners/lowest.h"
#include "checkpoint/roomy_layout.h"

namespace palimpsest {

namespace {

/// Sizes of layouts that were too large, by schedule.
using TooLarge = std::map<const Proposal*, Bytes>;

/// The best candidate of each planner, from schedules in order of cost.
std::vector<Candidate> best_of_each(const std::vector<Measured>& measured, Bytes limit,
                                    double one_pass, const TooLarge& too_large) {
  std::vector<Candidate> best;
  for (const auto& [proposal, peak, cost] : measured) {
    const auto refused = too_large.find(proposal.get());
    const Bytes layout = refused == too_large.end() ? 0 : refused->second;
    const Candidate candidate{proposal->planner, peak, one_pass > 0 ? cost / one_pass : 1.0,
                              peak <= limit && layout == 0, layout};
    const auto known = std::find_if(best.begin(), best.end(), [&](const Candidate& other) {
      return other.planner == candidate.planner;
    });
    if (known == best.end()) {
      best.push_back(candidate);
    } else if (!known->fits &&
               (candidate.fits || (known->layout == 0 && candidate.peak < known->peak))) {
      *known = candidate;
    }
  }
  std::stable_sort(best.begin(), best.end(), [](const Candidate& a, const Candidate& b) {
    return a.fits != b.fits ? a.fits : a.cost_ratio < b.cost_ratio;
  });
  return best;
}

/// The plan, with the identity of its graph.
Plan labelled(Plan plan, const Graph& graph) {
  plan.schedule.graph = ScheduledGraph::of(graph);
  return plan;
}

}  // namespace

/// Chooses the cheapest schedule with a layout within a limit. A schedule that fits one limit is
/// also considered for every larger one.
class Planning::CheapestLaidOut {
 public:
  struct Found {
    std::size_t at;
    Layout layout;
  };

  /// The schedules must be in order of cost.
  CheapestLaidOut(const Graph& graph, std::span<const Measured> measured, Bytes limit)
      : graph_(graph), measured_(measured), limit_(limit) {}

  std::optional<Found> find(Aim aim) {
    std::optional<Found> found;
    std::vector<std::pair<std::size_t, Bytes>> cheaper;  // index and size of a quick layout
    for (std::size_t i = 0; i < measured_.size() && !found; ++i) {
      if (measured_[i].peak > limit_) continue;
      Layout layout = lay_out_quickly(graph_, measured_[i].proposal->schedule, limit_);
      if (layout.size <= limit_) {
        found = {i, std::move(layout)};
      } else {
        cheaper.emplace_back(i, layout.size);
        too_large_[measured_[i].proposal.get()] = layout.size;
      }
    }
    if (aim == Aim::any) {
      if (found) return found;
      std::ranges::stable_sort(cheaper, {}, [](const auto& one) { return one.second; });
    }
    // A thorough layout is worth its time when it is near the limit, and when a smaller limit would
    // need it.
    const Bytes near = aim == Aim::soon ? 0 : limit_ / std::max<Bytes>(2, graph_.node_count() / 16);
    std::optional<Bytes> easiest;  // computed when it is needed
    for (const auto& [at, size] : cheaper) {
      if (found && size - limit_ > near) {
        if (measured_[at].peak >= found->layout.size) continue;
        if (!easiest) easiest = smallest_quick_layout();
        if (measured_[at].peak >= *easiest) continue;
      }
      Layout layout = lay_out(graph_, measured_[at].proposal->schedule, limit_);
      if (layout.size <= limit_) {
        too_large_.erase(measured_[at].proposal.get());
        return {{at, std::move(layout)}};
      }
      too_large_[measured_[at].proposal.get()] = layout.size;
    }
    if (found && aim == Aim::cheapest) {
      Layout smaller = lay_out(graph_, measured_[found->at].proposal->schedule, limit_);
      if (smaller.size < found->layout.size) found->layout = std::move(smaller);
    }
    return found;
  }

  const TooLarge& too_large() const { return too_large_; }

 private:
  /// The smallest limit that some schedule fits with a quick layout. Below it, all layouts are
  /// thorough.
  Bytes smallest_quick_layout() const {
    std::vector<const Measured*> order;
    for (const Measured& one : measured_) order.push_back(&one);
    std::ranges::stable_sort(order, {}, [](const Measured* one) { return one->peak; });
    Bytes smallest = unlimited;
    for (const Measured* one : order) {
      if (one->peak >= smallest) break;  // a layout is never smaller than the peak
      smallest =
          std::min(smallest, lay_out_quickly(graph_, one->proposal->schedule, one->peak).size);
    }
    return smallest;
  }

  const Graph& graph_;
  std::span<const Measured> measured_;
  Bytes limit_;
  TooLarge too_large_;
};

Planning::Attempt Planning::attempt_packed(Bytes budget, std::span<const Proposal> known, Aim aim) {
  if (graph_.node_count() == 0) {
    throw ArgumentError("[plan] the graph is empty; record something first");
  }
  Schedule everything = std::move(keep_all()->propose(graph_, unlimited).front().schedule);
  // A plan without a budget is final.
  const bool quickly = aim == Aim::soon && budget != unlimited;
  Layout roomy = quickly ? lay_out_quickly(graph_, everything, unlimited)
                         : lay_out(graph_, everything, unlimited);
  const Bytes keep_all_peak = roomy.size;
  const Bytes limit = std::min(budget, engine_.limit(keep_all_peak, budget));
  if (engine_.accepts_keep_all()) {
    Simulation simulation = simulate(graph_, everything);
    if (roomy.size > limit && simulation.peak <= limit) roomy = lay_out(graph_, everything, limit);
    if (roomy.size <= limit) {
      return {Plan{std::move(everything), std::move(simulation), std::move(roomy), planner_.name(),
                   keep_all_peak, budget}};
    }
  }
  everything = {};  // free memory for planning
  roomy = {};

  std::vector<Measured> measured = propose(limit, known);
  Attempt made{{}, limit, 0, keep_all_peak};
  made.plan = cheapest(measured, 0, limit, aim);
  if (!made.plan) {
    made.smallest = engine_.accepts_keep_all() ? keep_all_peak : unlimited;
    look_lower(std::move(measured), aim, made);
  }
  if (made.plan) {
    made.plan->keep_all_peak = keep_all_peak;
    made.plan->budget = budget;
  }
  return made;
}

/// The planner's proposals, then the known ones.
std::vector<Measured> Planning::propose(Bytes limit, std::span<const Proposal> known) {
  std::vector<Measured> measured = proposed_;
  if (measured.empty()) {
    std::vector<Proposal> proposals = [&] {
      const UserCall user;  // it may be a planner of the user
      return planner_.propose(graph_, limit);
    }();
    if (proposals.empty()) {
      throw ArgumentError("[planner] the planner '" + planner_.name() +
                          "' proposed no schedule; return at least one, also for a "
                          "budget that is too small");
    }
    measured = measure(graph_, std::move(proposals), planner_.name());
    if (engine_.ignores_budget()) proposed_ = measured;
  }
  std::ranges::move(measure(graph_, {known.begin(), known.end()}, planner_.name()),
                    std::back_inserter(measured));
  return measured;
}

/// The plan of the cheapest schedule that fits, among those from `first` on.
std::optional<Plan> Planning::cheapest(std::vector<Measured>& measured, std::size_t first,
                                       Bytes limit, Aim aim) const {
  const std::span<Measured> rest = std::span(measured).subspan(first);
  cheapest_first(rest);
  CheapestLaidOut schedules(graph_, rest, limit);
  std::optional<CheapestLaidOut::Found> found = schedules.find(aim);
  if (!found) return {};
  const std::shared_ptr<const Proposal> proposal = rest[found->at].proposal;
  Simulation simulation = simulate(graph_, proposal->schedule);
  cheapest_first(measured);
  std::vector<Candidate> candidates =
      best_of_each(measured, limit, simulation.one_pass_cost, schedules.too_large());
  Plan plan{proposal->schedule, std::move(simulation), std::move(found->layout), proposal->planner};
  plan.candidates = std::move(candidates);
  return plan;
}

/// Looks for a plan when no proposal fits.
void Planning::look_lower(std::vector<Measured> measured, Aim aim, Attempt& made) const {
  std::optional<Lowest> lowest = engine_.lowest(graph_, made.limit);
  if (!lowest) {
    made.measured = std::move(measured);
    return;
  }
  made.certain = true;
  made.smallest = std::min(made.smallest, lowest->size);
  const std::size_t proposed = measured.size();
  std::ranges::move(measure(graph_, std::move(lowest->proposals), planner_.name()),
                    std::back_inserter(measured));
  made.plan = cheapest(measured, proposed, made.limit, aim);
}

/// Finds the smallest budget for the proposals.
void Planning::name_smallest(Attempt& failed, bool any_known) {
  if (failed.certain) return;
  const auto smallest = [&] { return smallest_layout(graph_, failed.measured).size; };
  if (!engine_.ignores_budget() || any_known) {
    failed.smallest = std::min(failed.smallest, smallest());
    return;
  }
  if (!smallest_layout_) smallest_layout_ = smallest();
  failed.smallest = std::min(failed.smallest, *smallest_layout_);
}

/// Makes the packed plan, then moves serial nodes apart and removes waits for memory. It uses
/// memory up to the limit, but no more than without a limit. A plan that is needed soon removes
/// waits only if that may pay in one run.
Planning::Attempt Planning::attempt(Bytes budget, std::span<const Proposal> known, Aim aim) {
  Attempt result = attempt_packed(budget, known, aim);
  if (!result.plan) return result;
  const Bytes limit = std::min(budget, engine_.limit(result.plan->keep_all_peak, budget));
  std::optional<Layout> apart =
      lay_out_apart(graph_, result.plan->schedule, result.plan->layout.size, limit);
  if (apart) result.plan->layout = std::move(*apart);
  Layout& layout = result.plan->layout;
  // A plan that recomputes nothing is never improved later.
  const bool is_final = aim == Aim::cheapest || result.plan->simulation.recomputed == 0;
  if (!is_final &&
      !may_room_pay_at_once(graph_, result.plan->schedule, result.plan->simulation.cost)) {
    return result;
  }
  const Bytes packed =
      limit == unlimited ? layout.size : std::max(layout.size, result.plan->keep_all_peak);
  std::optional<Layout> roomy = roomy_layout(graph_, result.plan->schedule, layout,
                                             std::min(limit, with_room(graph_, packed)));
  if (roomy) layout = std::move(*roomy);
  return result;
}

/// The smallest budget for which planning succeeds, after a failed attempt. A planner that plans
/// for its budget may not find again what it found for another one.
Bytes Planning::smallest_that_works(const Attempt& failed) {
  constexpr int most_tries = 6;
  Bytes smallest = failed.smallest;
  if (failed.certain) return smallest;
  for (int tries = 0; tries < most_tries; ++tries) {
    if (engine_.limit(failed.keep_all_peak, smallest) < smallest) return smallest;
    Attempt again = attempt_packed(smallest, {}, Aim::any);
    if (again.plan) return smallest;
    name_smallest(again, false);
    smallest = std::max(again.smallest, smallest + 1);
  }
  return engine_.accepts_keep_all() ? failed.keep_all_peak : smallest;
}

/// The planner would name no budget below it, by what an attempt has measured. 0 if the planner's
/// own limit applies.
Bytes Planning::least_budget(const Attempt& failed, Bytes budget) const {
  if (failed.limit < budget) return 0;
  if (failed.certain) return failed.smallest;
  Bytes least = failed.smallest;
  for (const Measured& one : failed.measured) least = std::min(least, one.peak);
  return least;
}

OrRefusal<Plan> Planning::plan(Bytes budget, std::span<const Proposal> known, Bytes named) {
  Attempt result = attempt(budget, known, Aim::cheapest);
  if (result.plan) return labelled(std::move(*result.plan), graph_);
  if (const Bytes least = least_budget(result, budget); least > named) {
    return BudgetError(budget, least, planner_.name());
  }
  name_smallest(result, !known.empty());
  const Bytes smallest = smallest_that_works(result);
  const Bytes allowed = engine_.limit(result.keep_all_peak, smallest);
  const bool own_limit = allowed < smallest;
  return BudgetError(own_limit ? allowed : budget, smallest, planner_.name(),
                     own_limit ? engine_.how_to_allow(smallest, result.keep_all_peak) : "");
}

std::optional<Plan> Planning::look(Bytes budget) {
  std::optional<Plan> plan = attempt(budget, {}, Aim::cheapest).plan;
  if (plan) plan = labelled(std::move(*plan), graph_);
  return plan;
}

std::optional<Plan> Planning::find(Bytes budget, std::span<const Proposal> known) {
  std::optional<Plan> plan = attempt(budget, known, Aim::soon).plan;
  if (plan) plan = labelled(std::move(*plan), graph_);
  return plan;
}

Bytes Planning::bytes() const {
  std::size_t bytes = 0;
  for (const Measured& one : proposed_) {
    bytes += sizeof one + sizeof *one.proposal + one.proposal->schedule.steps.size() * sizeof(Step);
  }
  return static_cast<Bytes>(bytes);
}

Plan make_plan(const Graph& graph, const Planner& planner, Bytes budget,
               std::span<const Proposal> known) {
  return Planning(graph, planner).make(budget, known);
}

std::optional<Plan> find_plan(const Graph& graph, const Planner& planner, Bytes budget,
                              std::span<const Proposal> known) {
  return Planning(graph, planner).find(budget, known);
}

Bytes smallest_budget(const Graph& graph, const Planner& planner) {
  const OrRefusal<Plan> plan = Planning(graph, planner).plan(0);
  return plan ? plan->predicted_peak() : plan.refusal().smallest_feasible();
}

}  // namespace palimpsest
