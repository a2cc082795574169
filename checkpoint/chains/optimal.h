#pragma once

#include <memory>

#include "checkpoint/chains/chain.h"

namespace palimpsest {

class ChainTable;

/// How to run a chain forwards and backwards.
struct ChainPlan {
  std::vector<ChainOperation> operations;
  double cost = 0;  ///< seconds
  Bytes peak = 0;   ///< bytes, by `run_chain`
  /// Seconds that no persistent schedule within the budget stays under. What `cost` is above is
  /// the most that counting memory in slots has lost.
  double lower_bound = 0;
};

/// The cheapest persistent schedules of a chain of unequal stages for all budgets up to `most`: the
/// problem "rotor" (Beaumont, Eyraud-Dubois, Hermann, Joly and Shilova, 2019), with any number of
/// records a stage. Persistent: what is kept stays until the backward that needs it.
///
/// X(s, t, m), the least seconds beyond one pass for stages s … t when the input of s is there, the
/// gradient of t's output is live, and it and all that is made may take m bytes, is the least of
/// - Σ forward(s … k − 1) + X(k, t, m − output(k − 1)) + X(s, k − 1, m), over s < k ≤ t,
/// - extra(record) + X(s + 1, t, m − saved(record)), over the records of s,
/// where the operations fit. Memory is counted in slots, sizes rounded up, so that a plan never
/// takes more than its budget; the smallest memory is also found in bytes, exactly. The slot is the
/// smallest multiple of all sizes' greatest common divisor of which `slots` cover what the chain
/// can use: plans are optimal when sizes are multiples of it. O(L³ slots) in time and 2 L² slots
/// bytes for L stages, twice that with lower bounds.
class OptimalChain {
 public:
  struct Settings {
    std::uint32_t slots = 500;
    /// Finds a lower bound by a second table, with sizes rounded down. Without it the bound is the
    /// optimum itself when nothing is rounded, else that of one pass.
    bool bounded = true;
  };

  /// Throws `ArgumentError` for what `check_chain` refuses, and for no slots.
  OptimalChain(std::vector<ChainStage> stages, Bytes most, Settings settings);
  OptimalChain(std::vector<ChainStage> stages, Bytes most)
      : OptimalChain(std::move(stages), most, Settings()) {}

  /// The smallest budget that a persistent schedule can keep, exactly.
  Bytes smallest_budget() const { return smallest_; }
  /// The least that makes recomputing needless.
  Bytes largest_budget() const { return largest_; }

  /// The plan for `budget`, or for `most` if that is less. Throws `BudgetError` below the smallest.
  ChainPlan plan(Bytes budget) const;

 private:
  std::vector<ChainStage> stages_;
  std::shared_ptr<const ChainTable> table_;
  std::shared_ptr<const ChainTable> bounds_;  // sizes rounded down; may be none
  Bytes smallest_;
  Bytes largest_;
  Bytes most_;
  int cost_exponent_ = 0;  // costs in the tables are divided by two to this power
  bool exact_;             // nothing is rounded
};

}  // namespace palimpsest
