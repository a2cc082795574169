#pragma once

#include <optional>

#include "autodiff/export.h"
#include "checkpoint/layout.h"
#include "checkpoint/planner.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// No plan fits the budget. Thrown before any work of the program that does not fit. An eager or
/// hybrid tape and a loop whose steps are recorded one by one have computed earlier parts by then.
class BudgetError : public EnvironmentError {
 public:
  /// `remedy`, when not empty, tells which setting allows the smallest budget, because no budget
  /// does.
  BudgetError(Bytes budget, Bytes smallest_feasible, const std::string& planner,
              const std::string& remedy = {});
  /// With a custom message, which names both sizes.
  BudgetError(const std::string& message, Bytes budget, Bytes smallest_feasible,
              bool own_limit = false)
      : EnvironmentError(message),
        budget_(budget),
        smallest_feasible_(smallest_feasible),
        own_limit_(own_limit) {}
  /// The bytes that no plan fits: the budget or, with `own_limit`, the planner's limit.
  Bytes budget() const { return budget_; }
  /// The smallest feasible budget found. Planning again with it succeeds, except with `own_limit`.
  Bytes smallest_feasible() const { return smallest_feasible_; }
  /// True when the planner's own limit, such as that of `fraction`, is below `smallest_feasible()`
  /// at any budget. The message says what to change instead.
  bool own_limit() const { return own_limit_; }

 private:
  Bytes budget_;
  Bytes smallest_feasible_;
  bool own_limit_ = false;
};

/// The best that one planner offered for a budget: its cheapest schedule that fits or, when it has
/// none, its cheapest one whose live bytes fit, or the one with the lowest peak.
struct Candidate {
  std::string planner;
  Bytes peak = 0;         ///< live bytes, by simulation
  double cost_ratio = 0;  ///< as `Simulation::cost_ratio`
  bool fits = false;      ///< false if its peak, or the smallest layout found, is above the budget
  Bytes layout = 0;       ///< the smallest layout found, if that is why it does not fit; else 0
};

/// A schedule with its predictions and its layout.
struct Plan {
  Schedule schedule;  ///< of nodes of the planned graph; see `runs`
  Simulation simulation;
  Layout layout;
  std::string planner;  ///< the planner that made it
  /// Approximate bytes of an arena when nothing is recomputed and loops hold all their states.
  Bytes keep_all_peak = 0;
  Bytes budget = 0;  ///< the requested budget
  std::vector<Candidate> candidates =
      {};  ///< cheapest first; empty when keep-all was taken at once
  /// By node of the tape, how often the plan runs it, alone or as part of a group. It is 0 for
  /// leaves, views and nodes replaced by others. Empty in plans made by `make_plan`.
  std::vector<std::uint32_t> runs = {};
  /// Predicted seconds of a run without a budget; 0 means `simulation.one_pass_cost`. The two
  /// differ for a program that is fused or simplified differently within a budget.
  double keep_all_cost = 0;
  /// Forward steps of the differentiated loops of the tape, and those of them that a run without a
  /// budget does not take. A loop of unknown length counts with 1,000 steps. 0 in plans made by
  /// `make_plan`.
  std::uint64_t loop_steps = 0;
  std::uint64_t recomputed_loop_steps = 0;

  /// Upper bound on the bytes that the run takes in an arena, as with the default
  /// `RunOptions::memory`. With other policies a run may take more; a `Forecast` counts that.
  Bytes predicted_peak() const { return layout.size; }
  /// Approximate bytes of the plan itself.
  Bytes metadata_bytes() const;
  /// Bytes saved compared with keeping everything; 0 when concurrent loops take more.
  Bytes bytes_saved() const;
  /// Work beyond that of a run without a budget, as a fraction of it. Comparable between budgets.
  double compute_overhead() const {
    return keep_all_cost > 0 ? simulation.cost / keep_all_cost - 1 : simulation.cost_ratio() - 1;
  }
  /// True when the plan runs `node` more than once. `node` is a node of the tape or, in plans made
  /// by `make_plan`, of the graph.
  bool recomputes(NodeId node) const;
  /// One line: planner, peak, share of keep-all, extra work.
  std::string summary() const;
};

/// The line of `Plan::summary` for these numbers.
std::string summarize(const std::string& planner, Bytes peak, Bytes keep_all_peak,
                      std::uint32_t computed, std::uint32_t recomputed, double overhead,
                      std::uint64_t loop_steps = 0, std::uint64_t recomputed_loop_steps = 0);

/// A budget that never binds.
inline constexpr Bytes unlimited = INT64_MAX;

/// The cheapest of the planner's schedules whose layout fits the budget and the planner's own
/// limit, or keep-all when it fits and the planner accepts it. Schedules `known` already, such as
/// those for a smaller budget, compete too. Throws `BudgetError` naming the smallest feasible
/// budget found, and `ArgumentError` for an empty graph.
Plan make_plan(const Graph& graph, const Planner& planner, Bytes budget = unlimited,
               std::span<const Proposal> known = {});

/// Like `make_plan`, but in less time: it looks for smaller layouts with less effort, and returns
/// nothing when no plan fits, without looking for the smallest budget.
std::optional<Plan> find_plan(const Graph& graph, const Planner& planner, Bytes budget,
                              std::span<const Proposal> known = {});

/// The smallest budget found for which `make_plan` succeeds.
Bytes smallest_budget(const Graph& graph, const Planner& planner);

}  // namespace palimpsest
