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
  /// A lower bound, in seconds, on the cost of any persistent schedule within the budget. The
  /// difference to `cost` is the most that counting memory in slots has lost.
  double lower_bound = 0;
};

/// The cheapest persistent schedules of a chain of unequal stages for all budgets up to `most`.
/// This is the "rotor" problem (Beaumont, Eyraud-Dubois, Hermann, Joly and Shilova, 2019), with any
/// number of records per stage. Persistent means that kept values stay until the backward pass that
/// needs them.
///
/// X(s, t, m) is the least number of seconds beyond one pass for stages s … t. The input of s is
/// given, and the gradient of t's output is live. That gradient and everything that is made may
/// take m bytes. X is the least of
///
/// - Σ forward(s … k − 1) + X(k, t, m − output(k − 1)) + X(s, k − 1, m), over s < k ≤ t,
/// - extra(record) + X(s + 1, t, m − saved(record)), over the records of s,
///
/// where the operations fit. Memory is counted in slots, with sizes rounded up, so a plan never
/// takes more than its budget. The smallest memory is also computed in bytes, exactly. The slot is
/// a multiple of the greatest common divisor of all sizes: the smallest with which `slots` cover
/// the memory that the chain can use. Plans are optimal when sizes are multiples of the slot. O(L³
/// slots) in time and 2 L² slots bytes for L stages, twice that with lower bounds.
class OptimalChain {
 public:
  struct Settings {
    std::uint32_t slots = 500;
    /// Computes a lower bound by a second table, with sizes rounded down. Without it the bound is
    /// the optimum itself when nothing is rounded, otherwise the cost of one pass.
    bool bounded = true;
  };

  /// Throws `ArgumentError` for what `check_chain` refuses, and for no slots.
  OptimalChain(std::vector<ChainStage> stages, Bytes most, Settings settings);
  OptimalChain(std::vector<ChainStage> stages, Bytes most)
      : OptimalChain(std::move(stages), most, Settings()) {}

  /// The smallest budget of any persistent schedule, exactly.
  Bytes smallest_budget() const { return smallest_; }
  /// The smallest budget with which nothing is recomputed.
  Bytes largest_budget() const { return largest_; }

  /// The plan for `budget`, or for `most` if that is less. Throws `BudgetError` below the smallest
  /// budget.
  ChainPlan plan(Bytes budget) const;

 private:
  std::vector<ChainStage> stages_;
  std::shared_ptr<const ChainTable> table_;
  std::shared_ptr<const ChainTable> bounds_;  // sizes rounded down; may be null
  Bytes smallest_;
  Bytes largest_;
  Bytes most_;
  int cost_exponent_ = 0;  // costs in the tables are divided by two to this power
  bool exact_;             // nothing is rounded
};

}  // namespace palimpsest
