#pragma once

#include <cstdint>

#include "checkpoint/plan.h"
#include "strategy/compile/planning_time.h"

namespace palimpsest {

struct PlanVersion;

/// Improves a plan while it serves. Planning takes about a tenth of the time that a program runs:
/// the first plans of its forms, then a search for better ones. The search proceeds in rounds and
/// ends when several rounds in a row gain nothing.
///
/// If planning takes longer than a tenth of a run, a fast first plan serves initially (see
/// `EnginePlanner::fast`). Full planning is then the first round. A fast plan is not used if
/// planning takes no longer than the plan's recomputation. For graphs of up to 83 nodes, only the
/// layout is made by a faster method, so that a larger budget never costs more.
class PlanImprovement {
 public:
  /// True if planning takes longer than a tenth of a run of the graph.
  static bool needs_fast_first_plan(const Graph& graph, const Planner& planner, const Pace& pace);
  /// The planner that makes the fast first plan.
  static PlannerPtr fast_planner(const Graph& graph, const PlannerPtr& planner);
  /// True if a fast plan recomputes for longer than planning takes.
  static bool recomputes_too_long(const Graph& graph, const Plan& fast, const Pace& pace);

  PlanImprovement() = default;
  explicit PlanImprovement(bool is_fast) : is_fast_(is_fast) {}

  /// Notes that the plan has served a run.
  void served() { has_served_ = true; }
  /// Searches for a better plan if a round is due.
  void improve(PlanVersion& version, PlanningTime& time);
  /// Replaces a fast plan by the whole planner's at once.
  void plan_in_full(PlanVersion& version, PlanningTime& time);

  /// True after a run.
  bool has_served() const { return has_served_; }
  /// True for a fast first plan.
  bool is_fast() const { return is_fast_; }
  /// Number of better plans found.
  std::uint32_t improvements() const { return improvements_; }

 private:
  /// Seconds that the next round is predicted to take.
  double next_round(const Graph& graph) const;
  /// Continues the planner's search from the plan.
  void continue_search(PlanVersion& version);
  /// Plans again and adopts the result. Returns the saved seconds.
  double plan_again(PlanVersion& version, const Planner& planner, bool if_equal = false);

  bool is_fast_ = false;
  bool has_served_ = false;
  double search_seconds_ = 0.01;  // of the next round
  double layout_seconds_ = 0.01;  // of the last round
  std::uint64_t rounds_ = 0;
  int rounds_without_gain_ = 0;
  std::uint32_t improvements_ = 0;
};

}  // namespace palimpsest
