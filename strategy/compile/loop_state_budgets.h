#pragma once

#include <optional>
#include <string>

#include "strategy/compile/program_spec.h"

namespace palimpsest {

/// Reserves memory for the states of a tape's loops, so that a plan can count it. strategy/loops
/// implements it.
class LoopStateBudgets {
 public:
  virtual ~LoopStateBudgets() = default;
  /// Divides the budget between the states of the differentiated loops and everything else, and
  /// notes it on the tape. Returns the refusal of a loop's own budget that is too small.
  virtual std::optional<BudgetError> reserve(Tape& tape, const ProgramSpec& spec,
                                             const RunOptions& options) = 0;
  /// One line about the last reservation. Empty if there are no loops.
  virtual std::string summary() const = 0;
};

}  // namespace palimpsest
