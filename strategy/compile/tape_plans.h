#pragma once

#include <memory>
#include <vector>

#include "strategy/compile/loop_state_budgets.h"
#include "strategy/explain/budget_plans.h"

namespace palimpsest {

/// Plans of a tape whose loops divide each budget anew. Keeps what the tape records, without its
/// values.
class TapePlans final : public PlansOfProgram {
 public:
  /// `loops` divides budgets of this program.
  TapePlans(const Tape& tape, const ProgramSpec& spec, const RunOptions& options,
            std::unique_ptr<const LoopStateBudgets> loops);

  std::unique_ptr<BudgetPlans> begin() const override;
  Bytes metadata_bytes() const override;

 private:
  Tape tape_;  // present values are marked by a buffer without their elements
  std::vector<ValueId> targets_;
  std::vector<NodeId> held_;
  ProgramSpec spec_;
  RunOptions options_;
  std::unique_ptr<const LoopStateBudgets> loops_;
};

}  // namespace palimpsest
