#include "strategy/plan_store.h"

#include <algorithm>
#include <chrono>
#include <optional>

namespace palimpsest {

namespace {

using Clock = std::chrono::steady_clock;

/// Enough for the handful of structures and budgets a program alternates between.
constexpr std::size_t most_entries = 16;
/// Of what a plan has run, spent on looking for a better one.
constexpr double share = 0.1;
constexpr double longest_round = 2;
constexpr int most_vain = 3;
/// Of the cost of one pass, saved by a round that was not in vain.
constexpr double noticeable = 1e-3;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// What planning takes that is not hurried: what `automatic({.moves = 0})` does at a thousand
/// nodes, and less than that at more.
double whole_seconds(const Graph& graph) {
  return 1.2e-4 * static_cast<double>(graph.needed_nodes().size());
}

/// A hurried plan where more would not pay at once; nothing when there is none.
std::optional<Plan> hurried_plan(const Graph& graph, const Planner& planner, Bytes budget,
                                 std::span<const Proposal> known) {
  const PlannerPtr hurried = planner.hurried();
  if (hurried == nullptr || whole_seconds(graph) <= share * graph.one_pass_cost()) return {};
  std::optional<Plan> plan = find_plan(graph, *hurried, budget, known);
  if (!plan || plan->predicted_peak() > planner.limit(plan->keep_all_peak, budget)) return {};
  if (plan->candidates.empty()) plan->planner = planner.name();  // keep-all, in no hurry
  return plan;
}

/// Where the targets lie when the plan has been carried out.
std::vector<Arena::Range> places_of_targets(const Graph& graph, const Plan& plan) {
  std::vector<bool> wanted(graph.value_count());
  for (const ValueId target : graph.targets()) wanted[graph.storage(target)] = true;
  std::vector<Arena::Range> places;
  for (const Interval& interval : plan.layout.intervals) {
    if (interval.last + 1 < plan.schedule.steps.size()) continue;
    if (interval.storage == Interval::workspace || !wanted[interval.storage]) continue;
    places.push_back({interval.offset, interval.bytes});
  }
  return places;
}

Bytes limit_of(const PlanStore::Entry& entry) {
  return std::min(entry.budget, entry.planner->limit(entry.ready.plan.keep_all_peak, entry.budget));
}

}  // namespace

PlanStore::Ready::Ready(const Graph& graph, Plan p)
    : plan(std::move(p)), program(graph, plan), results(places_of_targets(graph, plan)) {}

PlanStore::Entry& PlanStore::find_or_make(const std::shared_ptr<const Graph>& graph,
                                          const PlannerPtr& planner, Bytes budget) {
  const std::string key = planner->key();
  std::optional<std::uint64_t> hash;  // found out when it is needed
  const auto is_same = [&](const Entry& entry) {
    if (entry.key != key) return false;
    if (entry.graph == graph) return true;
    if (!hash) hash = graph->structure_hash();
    return entry.hash == *hash && *entry.graph == *graph;
  };
  std::vector<const Entry*> others;
  auto same = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (!is_same(*entry)) continue;
    if (entry->budget == budget) {
      same = entry;
    } else {
      others.push_back(&*entry);
    }
  }
  if (same != entries_.end()) {
    for (const Entry* other : others) adopt(*same, other->ready.plan);
    improve(*same);
    same->reused = true;
    same->graph = graph;
    entries_.splice(entries_.begin(), entries_, same);
    return entries_.front();
  }
  const bool fits = std::any_of(others.begin(), others.end(), [&](const Entry* other) {
    return other->ready.plan.predicted_peak() <= budget;
  });
  for (const Refusal& refusal : refusals_) {
    if (!fits && refusal.graph == graph && refusal.key == key && refusal.budget == budget) {
      throw refusal.error;
    }
  }
  std::vector<Proposal> known;
  for (const Entry* other : others) {
    known.emplace_back(other->ready.plan.schedule, other->ready.plan.planner);
  }
  const Clock::time_point start = Clock::now();
  std::optional<Plan> plan = hurried_plan(*graph, *planner, budget, known);
  const bool hurried = plan.has_value();
  try {
    if (!plan) plan = make_plan(*graph, *planner, budget, known);
  } catch (const BudgetError& error) {
    refusals_.push_front({graph, key, budget, error});
    if (refusals_.size() > most_entries) refusals_.pop_back();
    throw;
  }
  Ready ready(*graph, std::move(*plan));
  ++made_;
  if (!hash) hash = graph->structure_hash();
  entries_.push_front({*hash, key, planner, budget, graph, std::move(ready)});
  entries_.front().hurried = hurried;
  entries_.front().planning_seconds = seconds_since(start);
  if (entries_.size() > most_entries) entries_.pop_back();
  return entries_.front();
}

double PlanStore::adopt(Entry& entry, Plan plan) {
  const double saved = entry.ready.plan.simulation.cost - plan.simulation.cost;
  if (saved <= 0 || plan.predicted_peak() > limit_of(entry)) return 0;
  plan.budget = entry.budget;
  entry.ready = Ready(*entry.graph, std::move(plan));
  return saved;
}

void PlanStore::improve(Entry& entry) {
  if (entry.vain >= most_vain || entry.ready.plan.simulation.recomputed == 0) return;
  const double next = entry.hurried ? whole_seconds(*entry.graph) : entry.next_seconds;
  if (share * entry.run_seconds < entry.planning_seconds + next) return;
  const Clock::time_point start = Clock::now();
  if (entry.hurried) {
    entry.hurried = false;
    look(entry, *entry.planner);
  } else {
    continue_search(entry);
  }
  entry.planning_seconds += seconds_since(start);
}

void PlanStore::continue_search(Entry& entry) {
  const Plan& plan = entry.ready.plan;
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

double PlanStore::look(Entry& entry, const Planner& planner) {
  const Proposal present(entry.ready.plan.schedule, entry.ready.plan.planner);
  const double saved =
      adopt(entry, make_plan(*entry.graph, planner, limit_of(entry), {&present, 1}));
  if (saved > 0) ++entry.improvements;
  return saved;
}

}  // namespace palimpsest
