#pragma once

#include <optional>
#include <span>
#include <vector>

#include "checkpoint/engine_planner.h"
#include "checkpoint/or_refusal.h"
#include "checkpoint/pareto_front.h"
#include "checkpoint/plan.h"

namespace palimpsest {

/// Plans one graph with one planner, for one budget after another. A planner that ignores the
/// budget is asked once.
class Planning {
 public:
  /// The graph and the planner must outlive it.
  Planning(const Graph& graph, const Planner& planner)
      : graph_(graph), planner_(planner), engine_(engine_part(planner)) {}

  /// Plans as `make_plan` does. A refusal names the smallest feasible budget, or a lower bound on
  /// it that is above `named`. Finding the budget itself takes longer than planning, and is
  /// needless if something else works within `named` bytes.
  OrRefusal<Plan> plan(Bytes budget, std::span<const Proposal> known = {}, Bytes named = unlimited);
  /// Likewise; throws the refusal.
  Plan make(Bytes budget, std::span<const Proposal> known = {}) {
    return plan(budget, known).take();
  }
  /// The plan that `plan` makes. Empty where `plan` would name a smallest budget, which takes
  /// longer.
  std::optional<Plan> look(Bytes budget);
  /// Plans quickly, as `find_plan` does.
  std::optional<Plan> find(Bytes budget, std::span<const Proposal> known = {});

  /// Approximate bytes kept for other budgets.
  Bytes bytes() const;

 private:
  /// A plan, or the information needed to explain why there is none.
  struct Attempt {
    std::optional<Plan> plan;
    Bytes limit = 0;
    Bytes smallest = 0;  ///< smallest feasible budget found so far
    Bytes keep_all_peak = 0;
    bool certain = false;                 ///< the planner has promised a plan for that budget
    std::vector<Measured> measured = {};  ///< what does not fit, where it promises nothing
  };

  /// The purpose of an attempt. All but `soon` find a plan for the same budgets.
  enum class Aim : std::uint8_t {
    cheapest,
    soon,  ///< with quick layouts, where a plan will be improved later
    any    ///< to know whether there is one
  };
  class CheapestLaidOut;

  Attempt attempt(Bytes budget, std::span<const Proposal> known, Aim aim);
  Attempt attempt_packed(Bytes budget, std::span<const Proposal> known, Aim aim);
  Bytes smallest_that_works(const Attempt& failed);
  Bytes least_budget(const Attempt& failed, Bytes budget) const;
  std::vector<Measured> propose(Bytes limit, std::span<const Proposal> known);
  std::optional<Plan> cheapest(std::vector<Measured>& measured, std::size_t first, Bytes limit,
                               Aim aim) const;
  void look_lower(std::vector<Measured> measured, Aim aim, Attempt& made) const;
  void name_smallest(Attempt& failed, bool any_known);

  const Graph& graph_;
  const Planner& planner_;
  const EnginePlanner& engine_;           // its part for engines
  std::vector<Measured> proposed_;        // proposals of a planner that ignores the budget
  std::optional<Bytes> smallest_layout_;  // of these proposals
};

}  // namespace palimpsest
