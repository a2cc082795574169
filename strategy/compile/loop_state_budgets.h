#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/engine_planner.h"
#include "strategy/compile/form_choice.h"
#include "strategy/compile/program_spec.h"
#include "strategy/explain/explanation.h"

namespace palimpsest {

/// Reserves memory for the states of a tape's loops, so that a plan can count it. strategy/loops
/// implements it.
class LoopStateBudgets {
 public:
  virtual ~LoopStateBudgets() = default;
  /// Divides the budget between the states of the differentiated loops and everything else, and
  /// notes it on the tape. A planner's own limit counts as a budget. Returns the refusal of a
  /// loop's own budget that is too small.
  virtual std::optional<BudgetError> reserve(Tape& tape, const ProgramSpec& spec,
                                             const RunOptions& options) = 0;
  /// What the program of the last reservation takes if its loops hold all their states, and
  /// everything else is kept. Empty if the graph shows it, because they do or there are none.
  virtual std::optional<KeepAll> keep_all() const = 0;
  /// The work of the loops of the last reservation.
  virtual std::vector<Explanation::LoopSteps> steps() const = 0;
  /// A lower bound on the peak of any schedule, in any division of the budget.
  virtual Bytes peak_bound(Tape& tape, const ProgramSpec& spec, const RunOptions& options) = 0;
  /// Divides budgets of a copy of the tape that may outlive it. Null if there must be none: it
  /// would ask users' operations for workspaces, or keep a journal from other processes.
  virtual std::unique_ptr<LoopStateBudgets> for_copy_of(const Tape& tape) const = 0;
  /// One line about the last reservation. Empty if there are no loops.
  virtual std::string summary() const = 0;
};

/// The planner of a program that takes `keep_all` when its loops hold everything: that of the
/// options, with a limit of its own that counts these states.
inline PlannerPtr planner_for(const RunOptions& options, const std::optional<KeepAll>& keep_all) {
  if (!keep_all || options.planner == nullptr) return options.planner;
  PlannerPtr planner = engine_part(options.planner).with_keep_all(keep_all->peak);
  return planner != nullptr ? planner : options.planner;
}

}  // namespace palimpsest
