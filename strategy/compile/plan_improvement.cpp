#include "strategy/compile/plan_improvement.h"

#include <algorithm>

#include "checkpoint/engine_planner.h"
#include "strategy/base/stopwatch.h"
#include "strategy/compile/plan_versions.h"

namespace palimpsest {
namespace {

constexpr double longest_round = 2;
/// Graphs of up to so many nodes are planned by the whole planner even at first, with quick
/// layouts. A fast planner would save less time than its plans cost. The number is also checked by
/// tests/programs/program_passes.cpp.
constexpr std::size_t few_nodes = 83;
constexpr int most_rounds_without_gain = 3;
/// The least saving that counts as a gain, as a share of the cost of one pass.
constexpr double noticeable = 1e-3;

/// Predicted seconds of the whole planner: about those of `automatic({.moves = 0})` for graphs of
/// 100 to 4,000 nodes. Layouts take most of the time for few nodes, proposals for many.
double whole_seconds(const Graph& graph) {
  return 0.03 + 6.5e-5 * static_cast<double>(graph.needed_nodes().size());
}

bool has_few_nodes(const Graph& graph) { return graph.needed_nodes().size() <= few_nodes; }

}  // namespace

bool PlanImprovement::needs_fast_first_plan(const Graph& graph, const Planner& planner,
                                            const Pace& pace) {
  if (engine_part(planner).fast() == nullptr) return false;
  return whole_seconds(graph) > PlanningTime::share * pace.seconds(graph.one_pass_cost());
}

PlannerPtr PlanImprovement::fast_planner(const Graph& graph, const PlannerPtr& planner) {
  return has_few_nodes(graph) ? planner : engine_part(planner).fast();
}

bool PlanImprovement::recomputes_too_long(const Graph& graph, const Plan& fast, const Pace& pace) {
  const double extra = fast.simulation.cost - fast.simulation.one_pass_cost;
  return !has_few_nodes(graph) && pace.seconds(extra) >= whole_seconds(graph);
}

void PlanImprovement::improve(PlanVersion& version, PlanningTime& time) {
  const bool is_done = rounds_without_gain_ >= most_rounds_without_gain;
  if (is_done || version.plan->simulation.recomputed == 0) return;
  if (!is_fast_ && !has_served_) return;  // another form serves
  if (!time.allows(next_round(*version.graph))) return;
  if (is_fast_) {
    plan_in_full(version, time);
    return;
  }
  const Stopwatch stopwatch;
  const double search_seconds = search_seconds_;
  continue_search(version);
  const double seconds = stopwatch.seconds();
  layout_seconds_ = std::max(0.0, seconds - search_seconds);
  time.planned(seconds);
}

void PlanImprovement::plan_in_full(PlanVersion& version, PlanningTime& time) {
  if (!is_fast_) return;
  const Stopwatch stopwatch;
  // The whole planner's plan may leave room for steps to run in parallel.
  plan_again(version, *version.planner, true);
  is_fast_ = false;  // not where planning was stopped
  time.planned(stopwatch.seconds());
}

double PlanImprovement::next_round(const Graph& graph) const {
  return is_fast_ ? whole_seconds(graph) : search_seconds_ + layout_seconds_;
}

void PlanImprovement::continue_search(PlanVersion& version) {
  const PlannerPtr planner =
      engine_part(version.planner).continuing(version.plan->schedule, search_seconds_, ++rounds_);
  if (planner == nullptr) {
    rounds_without_gain_ = most_rounds_without_gain;
    return;
  }
  const double saved = plan_again(version, *planner);
  const bool has_gain = saved > noticeable * version.plan->simulation.one_pass_cost;
  rounds_without_gain_ = has_gain ? 0 : rounds_without_gain_ + 1;
  search_seconds_ = std::min(2 * search_seconds_, longest_round);
}

double PlanImprovement::plan_again(PlanVersion& version, const Planner& planner, bool if_equal) {
  const Proposal present(version.plan->schedule, version.plan->planner);
  const double saved =
      version.adopt(make_plan(*version.graph, planner, version.limit(), {&present, 1}), if_equal);
  if (saved > 0) ++improvements_;
  return saved;
}

}  // namespace palimpsest
