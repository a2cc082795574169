#include "strategy/compile/plan_store.h"

#include <algorithm>
#include <optional>

#include "strategy/base/cache_limit.h"
#include "strategy/base/stopwatch.h"

namespace palimpsest {

namespace {

/// Enough for the handful of structures and budgets a program alternates between.
constexpr std::size_t most_entries = 16;
/// A program in each of its forms.
constexpr std::size_t least_entries = 4;
/// Of what a plan has run, spent on looking for a better one.
constexpr double planning_share = 0.1;
constexpr double longest_round = 2;
/// Up to so many seconds of planning, what a hurried planner saves is not worth what its plans
/// cost: a hurry is only over layouts. tests/programs/program_passes.cpp knows for how many nodes.
constexpr double short_planning = 0.01;
constexpr int most_vain = 3;
/// Of the cost of one pass, saved by a round that was not in vain.
constexpr double noticeable = 1e-3;

/// What planning takes that is not hurried: what `automatic({.moves = 0})` does at a thousand
/// nodes, and less than that at more.
double whole_seconds(const Graph& graph) {
  return 1.2e-4 * static_cast<double>(graph.needed_nodes().size());
}

Bytes limit_of(const PlanStore::Entry& entry) {
  return std::min(entry.budget, entry.planner->limit(entry.plan.keep_all_peak, entry.budget));
}

}  // namespace

Bytes PlanStore::bytes_of_entry(const Entry& entry) {
  const Bytes executor = entry.executor != nullptr ? entry.executor->metadata_bytes() : 0;
  // The entry may be the only owner of the graph.
  return entry.graph->metadata_bytes() + entry.plan.metadata_bytes() + executor;
}

Bytes PlanStore::bytes_of_refusal(const Refusal& refusal) {
  return refusal.graph->metadata_bytes();
}

Bytes PlanStore::bytes() const {
  return bytes_of_all(entries_, bytes_of_entry) + bytes_of_all(refusals_, bytes_of_refusal) +
         plannings_.bytes();
}

PlanStore::Match PlanStore::match(const Request& request) {
  const std::string key = request.planner->key();
  std::optional<std::uint64_t> hash;  // found out when it is needed
  Match match{entries_.end(), {}};
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->key != key) continue;
    if (entry->graph != request.graph) {
      if (!hash) hash = request.graph->structure_hash();
      if (entry->hash != *hash || !(*entry->graph == *request.graph)) continue;
    }
    if (entry->budget == request.budget) {
      match.same = entry;
    } else {
      match.others.push_back(&*entry);
    }
  }
  return match;
}

PlanStore::Entry* PlanStore::find(const Request& request) {
  const auto [same, others] = match(request);
  if (same == entries_.end()) return nullptr;
  for (const Entry* other : others) adopt(*same, other->plan);
  improve(*same);
  same->reused = true;
  same->graph = request.graph;
  entries_.splice(entries_.begin(), entries_, same);
  return &entries_.front();
}

bool PlanStore::is_in_a_hurry(const Request& request) {
  if (request.planner->hurried() == nullptr) return false;
  const Graph& graph = *request.graph;
  return whole_seconds(graph) > planning_share * graph.one_pass_cost();
}

PlanStore::Entry* PlanStore::hurry(const Request& request) {
  if (!is_in_a_hurry(request)) return nullptr;
  const Graph& graph = *request.graph;
  const bool is_short = whole_seconds(graph) <= short_planning;
  const PlannerPtr planner = is_short ? request.planner : request.planner->hurried();
  const std::string key = request.planner->key() + " in a hurry";
  const std::vector<const Entry*> others = match(request).others;
  if (refusal(request, key, others) != nullptr) return nullptr;
  const Stopwatch stopwatch;
  std::optional<Plan> plan = plannings_.with(request.graph, planner, [&](Planning& planning) {
    return planning.find(request.budget, schedules_of(others));
  });
  if (!plan ||
      plan->predicted_peak() > request.planner->limit(plan->keep_all_peak, request.budget)) {
    refuse({request.graph, key, request.budget, {}});
    return nullptr;
  }
  // Who would recompute for longer than it takes to plan has no time to save.
  const double extra = plan->simulation.cost - plan->simulation.one_pass_cost;
  if (!is_short && extra >= whole_seconds(graph)) return nullptr;
  if (plan->candidates.empty()) plan->planner = request.planner->name();  // keep-all, in no hurry
  Entry& entry = insert(request, std::move(*plan));
  entry.hurried = true;
  entry.planning_seconds = stopwatch.seconds();
  return &entry;
}

PlanStore::Entry& PlanStore::make(const Request& request) {
  const std::string key = request.planner->key();
  const std::vector<const Entry*> others = match(request).others;
  if (const Refusal* known = refusal(request, key, others)) throw *known->error;
  const Stopwatch stopwatch;
  try {
    Plan plan = plannings_.with(request.graph, request.planner, [&](Planning& planning) {
      return planning.make(request.budget, schedules_of(others));
    });
    Entry& entry = insert(request, std::move(plan));
    entry.planning_seconds = stopwatch.seconds();
    return entry;
  } catch (const BudgetError& error) {
    refuse({request.graph, key, request.budget, error});
    throw;
  }
}

std::vector<Proposal> PlanStore::schedules_of(std::span<const Entry* const> entries) {
  std::vector<Proposal> schedules;
  for (const Entry* entry : entries) {
    schedules.emplace_back(entry->plan.schedule, entry->plan.planner);
  }
  return schedules;
}

PlanStore::Entry& PlanStore::insert(const Request& request, Plan plan) {
  const auto& [graph, planner, budget] = request;
  ++made_;
  entries_.push_front(
      {graph->structure_hash(), planner->key(), planner, budget, graph, std::move(plan)});
  keep_within_limit(entries_, least_entries, most_entries, bytes_of_entry);
  return entries_.front();
}

const PlanStore::Refusal* PlanStore::refusal(const Request& request, const std::string& key,
                                             std::span<const Entry* const> others) const {
  for (const Entry* other : others) {
    if (other->plan.predicted_peak() <= request.budget) return nullptr;
  }
  for (const Refusal& refusal : refusals_) {
    if (refusal.graph == request.graph && refusal.key == key && refusal.budget == request.budget) {
      return &refusal;
    }
  }
  return nullptr;
}

void PlanStore::refuse(Refusal refusal) {
  refusals_.push_front(std::move(refusal));
  keep_within_limit(refusals_, least_entries, most_entries, bytes_of_refusal);
}

double PlanStore::adopt(Entry& entry, Plan plan, bool if_equal) {
  const double saved = entry.plan.simulation.cost - plan.simulation.cost;
  const bool is_taken = saved > 0 || (saved == 0 && if_equal);
  if (!is_taken || plan.predicted_peak() > limit_of(entry)) return 0;
  plan.budget = entry.budget;
  entry.plan = std::move(plan);
  entry.executor = nullptr;
  return saved;
}

void PlanStore::improve(Entry& entry) {
  if (entry.vain >= most_vain || entry.plan.simulation.recomputed == 0) return;
  const double next = entry.hurried ? whole_seconds(*entry.graph) : entry.next_seconds;
  if (planning_share * entry.run_seconds < entry.planning_seconds + next) return;
  const Stopwatch stopwatch;
  if (entry.hurried) {
    entry.hurried = false;
    // A plan that is not made in a hurry may have room for steps to run at once.
    look(entry, *entry.planner, true);
  } else {
    continue_search(entry);
  }
  entry.planning_seconds += stopwatch.seconds();
}

void PlanStore::continue_search(Entry& entry) {
  const Plan& plan = entry.plan;
  const PlannerPtr planner =
      entry.planner->continuing(plan.schedule, entry.next_seconds, ++entry.rounds);
  if (planner == nullptr) {
    entry.vain = most_vain;
    return;
  }
  const double saved = look(entry, *planner);
  entry.vain = saved > noticeable * plan.simulation.one_pass_cost ? 0 : entry.vain + 1;
  entry.next_seconds = std::min(2 * entry.next_seconds, longest_round);
}

double PlanStore::look(Entry& entry, const Planner& planner, bool if_equal) {
  const Proposal present(entry.plan.schedule, entry.plan.planner);
  const double saved =
      adopt(entry, make_plan(*entry.graph, planner, limit_of(entry), {&present, 1}), if_equal);
  if (saved > 0) ++entry.improvements;
  return saved;
}

}  // namespace palimpsest
