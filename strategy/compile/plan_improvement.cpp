#include "strategy/compile/plan_improvement.h"

#include <algorithm>

#include "checkpoint/engine_planner.h"
#include "strategy/base/stopwatch.h"
#include "strategy/compile/plan_versions.h"

namespace palimpsest {
namespace {

/// The share of the run time that looking for a better plan may take.
constexpr double planning_share = 0.1;
constexpr double longest_round = 2;
/// If planning takes no longer than this, a fast planner would save less time than its plans cost.
/// Then only layouts are made faster. tests/programs/program_passes.cpp checks the number of nodes.
constexpr double short_planning = 0.01;
constexpr int most_rounds_without_gain = 3;
/// The least saving that counts as a gain, as a share of the cost of one pass.
constexpr double noticeable = 1e-3;

/// Predicted seconds of the whole planner, from those of `automatic({.moves = 0})` at a thousand
/// nodes. It takes less per node for more nodes.
double whole_seconds(const Graph& graph) {
  return 1.2e-4 * static_cast<double>(graph.needed_nodes().size());
}

bool is_short(const Graph& graph) { return whole_seconds(graph) <= short_planning; }

}  // namespace

bool PlanImprovement::needs_fast_first_plan(const Graph& graph, const Planner& planner) {
  if (engine_part(planner).fast() == nullptr) return false;
  return whole_seconds(graph) > planning_share * graph.one_pass_cost();
}

PlannerPtr PlanImprovement::fast_planner(const Graph& graph, const PlannerPtr& planner) {
  return is_short(graph) ? planner : engine_part(planner).fast();
}

bool PlanImprovement::recomputes_too_long(const Graph& graph, const Plan& fast) {
  const double extra = fast.simulation.cost - fast.simulation.one_pass_cost;
  return !is_short(graph) && extra >= whole_seconds(graph);
}

void PlanImprovement::improve(PlanVersion& version) {
  const bool is_done = rounds_without_gain_ >= most_rounds_without_gain;
  if (is_done || version.plan->simulation.recomputed == 0) return;
  const double next = is_fast_ ? whole_seconds(*version.graph) : next_seconds_;
  if (planning_share * run_seconds_ < planning_seconds_ + next) return;
  if (is_fast_) {
    plan_in_full(version);
    return;
  }
  const Stopwatch stopwatch;
  continue_search(version);
  planning_seconds_ += stopwatch.seconds();
}

void PlanImprovement::plan_in_full(PlanVersion& version) {
  if (!is_fast_) return;
  const Stopwatch stopwatch;
  // The whole planner's plan may leave room for steps to run in parallel.
  plan_again(version, *version.planner, true);
  is_fast_ = false;  // not where planning was stopped
  planning_seconds_ += stopwatch.seconds();
}

void PlanImprovement::continue_search(PlanVersion& version) {
  const PlannerPtr planner =
      engine_part(version.planner).continuing(version.plan->schedule, next_seconds_, ++rounds_);
  if (planner == nullptr) {
    rounds_without_gain_ = most_rounds_without_gain;
    return;
  }
  const double saved = plan_again(version, *planner);
  const bool has_gain = saved > noticeable * version.plan->simulation.one_pass_cost;
  rounds_without_gain_ = has_gain ? 0 : rounds_without_gain_ + 1;
  next_seconds_ = std::min(2 * next_seconds_, longest_round);
}

double PlanImprovement::plan_again(PlanVersion& version, const Planner& planner, bool if_equal) {
  const Proposal present(version.plan->schedule, version.plan->planner);
  const double saved =
      version.adopt(make_plan(*version.graph, planner, version.limit(), {&present, 1}), if_equal);
  if (saved > 0) ++improvements_;
  return saved;
}

}  // namespace palimpsest
