#pragma once

#include <optional>

#include "checkpoint/layout.h"
#include "checkpoint/planner.h"

namespace palimpsest {

/// No plan fits the budget. Thrown before any work.
class BudgetError : public EnvironmentError {
 public:
  /// `remedy`, when there is one, says what allows the smallest where no budget does.
  BudgetError(Bytes budget, Bytes smallest_feasible, const std::string& planner,
              const std::string& remedy = {});
  /// With a message of its own, which names both.
  BudgetError(const std::string& message, Bytes budget, Bytes smallest_feasible,
              bool own_limit = false)
      : EnvironmentError(message),
        budget_(budget),
        smallest_feasible_(smallest_feasible),
        own_limit_(own_limit) {}
  /// The bytes no plan fits: the budget or, with `own_limit`, the planner's.
  Bytes budget() const { return budget_; }
  /// The smallest budget found; the same again with that budget succeeds, except with `own_limit`.
  Bytes smallest_feasible() const { return smallest_feasible_; }
  /// True when the planner's own limit (see `Planner::limit`) is below `smallest_feasible()`
  /// whatever the budget is. The message says what to change in its place.
  bool own_limit() const { return own_limit_; }

 private:
  Bytes budget_;
  Bytes smallest_feasible_;
  bool own_limit_ = false;
};

/// The best that one planner offered for a budget: its cheapest schedule within it, or, when it has
/// none, the one of the lowest peak.
struct Candidate {
  std::string planner;
  Bytes peak = 0;  ///< live bytes, by simulation
  double cost_ratio = 0;
  bool fits = false;  ///< the peak does; a layout can still be larger
};

/// A schedule with its predictions and its place in memory.
struct Plan {
  Schedule schedule;  ///< of nodes of the graph that was planned; see `runs`
  Simulation simulation;
  Layout layout;
  std::string planner;      ///< who made it
  Bytes keep_all_peak = 0;  ///< bytes the arena takes when nothing is recomputed, soon laid out
  Bytes budget = 0;         ///< what was asked for
  std::vector<Candidate> candidates =
      {};  ///< cheapest first; empty when keep-all was taken at once
  /// By node of the tape, how often the plan runs it, alone or as part of a group: 0 for leaves,
  /// views and nodes that others stand for. Empty for what `make_plan` makes.
  std::vector<std::uint32_t> runs = {};
  /// Seconds of a run without a budget; 0: those of one pass. A program that is fused or simplified
  /// differently within a budget has one pass of another cost.
  double keep_all_cost = 0;

  /// Bytes the run will take at most: the arena.
  Bytes predicted_peak() const { return layout.size; }
  /// Bytes that the plan itself takes, about.
  Bytes metadata_bytes() const;
  /// Bytes saved against keeping everything; none where loops that run at once take more.
  Bytes bytes_saved() const;
  /// Work beyond that of a run without a budget, as a fraction of it: comparable between budgets.
  double compute_overhead() const {
    return keep_all_cost > 0 ? simulation.cost / keep_all_cost - 1 : simulation.cost_ratio() - 1;
  }
  /// True when the plan computes `node` again: a node of the tape or, for what `make_plan`
  /// makes, of the graph.
  bool recomputes(NodeId node) const;
  /// One line: planner, peak, share of keep-all, extra work.
  std::string summary() const;
};

/// The line of `Plan::summary`, of its numbers.
std::string summarize(const std::string& planner, Bytes peak, Bytes keep_all_peak,
                      std::uint32_t computed, std::uint32_t recomputed, double overhead);

/// A budget that never binds.
inline constexpr Bytes unlimited = INT64_MAX;

/// The cheapest of the planner's schedules whose layout fits its limit (see `Planner::limit`);
/// keep-all when it fits and the planner accepts it. Schedules `known` before, as for a smaller
/// budget, are chosen from too. Throws `BudgetError` naming the smallest feasible budget found,
/// `ArgumentError` for an empty graph.
Plan make_plan(const Graph& graph, const Planner& planner, Bytes budget = unlimited,
               std::span<const Proposal> known = {});

/// What `make_plan` finds, nothing when no plan fits: then no smallest budget is named.
std::optional<Plan> find_plan(const Graph& graph, const Planner& planner, Bytes budget,
                              std::span<const Proposal> known = {});

/// The smallest budget found for which `make_plan` succeeds.
Bytes smallest_budget(const Graph& graph, const Planner& planner);

}  // namespace palimpsest
