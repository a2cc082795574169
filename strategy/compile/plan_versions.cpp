#include "strategy/compile/plan_versions.h"

#include <algorithm>
#include <set>

#include "strategy/base/cache_limit.h"
#include "strategy/base/stopwatch.h"
#include "strategy/compile/compiled_program.h"
#include "strategy/explain/explanation.h"

namespace palimpsest {
namespace {

/// Enough for the handful of budgets that a program alternates between.
constexpr std::size_t most_versions = 16;
/// One for each form of a program.
constexpr std::size_t least_versions = 4;

Bytes bytes_of_version(const PlanVersionPtr& version) {
  const Bytes compiled = version->compiled != nullptr ? version->compiled->bytes() : 0;
  const Bytes labels = version->explanation != nullptr ? version->explanation->metadata_bytes() : 0;
  return version->plan->metadata_bytes() + compiled + labels;
}

/// Counts the graph, since the version may be its only owner.
Bytes bytes_with_graph(const PlanVersionPtr& version) {
  return bytes_of_version(version) + version->graph->metadata_bytes();
}

std::vector<Proposal> schedules_of(std::span<const PlanVersion* const> versions) {
  std::vector<Proposal> schedules;
  for (const PlanVersion* version : versions) {
    schedules.emplace_back(version->plan->schedule, version->plan->planner);
  }
  return schedules;
}

}  // namespace

Bytes PlanVersion::limit() const {
  return std::min(budget, engine_part(planner).limit(plan->keep_all_peak, budget));
}

double PlanVersion::adopt(Plan other, bool if_equal) {
  const double saved = plan->simulation.cost - other.simulation.cost;
  const bool is_taken = saved > 0 || (saved == 0 && if_equal);
  if (!is_taken || other.predicted_peak() > limit()) return 0;
  other.budget = budget;
  plan = std::make_shared<const Plan>(std::move(other));
  compiled = nullptr;
  return saved;
}

template <class IsCounted>
Bytes PlanVersions::bytes_without(IsCounted is_counted) const {
  std::set<const Graph*> graphs;  // several plans and refusals share one
  for (const PlanVersionPtr& version : versions_) graphs.insert(version->graph.get());
  for (const Refusal& each : refusals_) graphs.insert(each.graph.get());
  Bytes bytes = bytes_of_all(versions_, bytes_of_version);
  for (const Graph* graph : graphs) {
    if (!is_counted(*graph)) bytes += graph->metadata_bytes();
  }
  return bytes;
}

Bytes PlanVersions::bytes() const {
  return bytes_without([](const Graph&) { return false; });
}

Bytes PlanVersions::bytes_beside(const LoweredForms& forms) const {
  return bytes_without([&](const Graph& graph) { return forms.has(graph); });
}

PlanVersions::Match PlanVersions::match(const Request& request) {
  const std::string key = request.planner->key();
  std::optional<std::uint64_t> hash;  // computed when needed
  Match match{versions_.end(), {}};
  for (auto entry = versions_.begin(); entry != versions_.end(); ++entry) {
    const PlanVersion& version = **entry;
    if (version.key != key) continue;
    if (version.graph != request.graph) {
      if (!hash) hash = request.graph->structure_hash();
      if (version.hash != *hash || !(*version.graph == *request.graph)) continue;
    }
    if (version.budget == request.budget) {
      match.same = entry;
    } else if (compete_) {
      match.others.push_back(&version);
    }
  }
  return match;
}

PlanVersionPtr PlanVersions::find(const Request& request) {
  const auto [same, others] = match(request);
  if (same == versions_.end()) return nullptr;
  PlanVersion& version = **same;
  for (const PlanVersion* other : others) version.adopt(*other->plan);
  version.improvement.improve(version, time_);
  version.reused = version.improvement.has_served();  // `plan_backward` finds plans too
  version.graph = request.graph;
  versions_.splice(versions_.begin(), versions_, same);
  return versions_.front();
}

PlanVersionPtr PlanVersions::plan_fast(const Request& request) {
  const Graph& graph = *request.graph;
  if (!needs_fast_first_plan(graph, *request.planner)) return nullptr;
  const PlannerPtr planner = PlanImprovement::fast_planner(graph, request.planner);
  const std::string key = request.planner->key() + " fast";
  const std::vector<const PlanVersion*> others = match(request).others;
  if (refusal(request, key, others) != nullptr) return nullptr;
  const Stopwatch stopwatch;
  std::optional<Plan> plan = plannings_.with(request.graph, planner, [&](Planning& planning) {
    return planning.find(request.budget, schedules_of(others));
  });
  if (!plan || plan->predicted_peak() >
                   engine_part(request.planner).limit(plan->keep_all_peak, request.budget)) {
    refuse({request.graph, key, request.budget, {}});
    return nullptr;
  }
  time_.planned(stopwatch.seconds());
  if (PlanImprovement::recomputes_too_long(graph, *plan, pace_)) return nullptr;
  if (plan->candidates.empty()) plan->planner = request.planner->name();  // the plan is keep-all
  const PlanVersionPtr version = insert(request, std::move(*plan));
  version->improvement = PlanImprovement(true);
  return version;
}

OrRefusal<PlanVersionPtr> PlanVersions::plan(const Request& request) {
  const std::string key = request.planner->key();
  const std::vector<const PlanVersion*> others = match(request).others;
  if (const Refusal* known = refusal(request, key, others)) return *known->error;
  std::erase_if(refusals_, [&](const Refusal& each) { return is_of(each, request, key); });
  const Stopwatch stopwatch;
  OrRefusal<Plan> plan = plannings_.with(request.graph, request.planner, [&](Planning& planning) {
    return planning.plan(request.budget, schedules_of(others), request.named);
  });
  if (!plan) {
    refuse({request.graph, key, request.budget, plan.refusal(), request.named});
    return plan.refusal();
  }
  time_.planned(stopwatch.seconds());
  return insert(request, std::move(*plan));
}

void PlanVersions::served(PlanVersion& version, double seconds) {
  version.improvement.served();
  time_.ran(seconds);
  pace_.ran(version.plan->simulation.cost, seconds);
}

const PlanVersionPtr& PlanVersions::insert(const Request& request, Plan plan) {
  const auto& [graph, planner, budget, named] = request;
  ++made_;
  versions_.push_front(std::make_shared<PlanVersion>(
      PlanVersion{graph->structure_hash(), planner->key(), planner, budget, graph,
                  std::make_shared<const Plan>(std::move(plan))}));
  keep_within_limit(versions_, least_versions, most_versions, bytes_with_graph);
  return versions_.front();
}

const PlanVersions::Refusal* PlanVersions::refusal(
    const Request& request, const std::string& key,
    std::span<const PlanVersion* const> others) const {
  for (const PlanVersion* other : others) {
    if (other->plan->predicted_peak() <= request.budget) return nullptr;
  }
  for (const Refusal& each : refusals_) {
    if (!is_of(each, request, key)) continue;
    const bool says_enough =
        each.named == unlimited || !each.error || each.error->smallest_feasible() > request.named;
    if (says_enough) return &each;
  }
  return nullptr;
}

bool PlanVersions::is_of(const Refusal& refusal, const Request& request, const std::string& key) {
  return refusal.graph == request.graph && refusal.key == key && refusal.budget == request.budget;
}

void PlanVersions::refuse(Refusal refusal) {
  refusals_.push_front(std::move(refusal));
  keep_within_limit(refusals_, least_versions, most_versions,
                    [](const Refusal& each) { return each.graph->metadata_bytes(); });
}

}  // namespace palimpsest
