#pragma once

#include "strategy/loops/loop.h"

namespace palimpsest {

/// Where a loop's backward part stores the adjoints that it carries from step to step, and those
/// that it returns.
class LoopAdjoints {
 public:
  LoopAdjoints(const LoopGradient& gradient, std::uint32_t steps, const KernelCall& call, Cut& cut);

  /// The adjoints of the results of step `step`, and the sums so far.
  const Addresses& given(std::uint32_t step);
  /// Where the adjoints of the inputs of step `step` are made; they are given to the next reversal.
  /// Call it after `given`.
  const Addresses& results(std::uint32_t step);
  /// Call when all steps have been reversed; `untouched` as in `LoopSteps`.
  void finish(const std::vector<bool>& untouched);

 private:
  const LoopGradient& gradient_;
  std::uint32_t steps_;
  Addresses carried_;    // adjoints of the current state
  Addresses blocks_[2];  // where these are made in turns
  Addresses first_;      // where those of the first state are returned, or null
  Addresses sums_[2];    // so far, and where the next ones are made
  std::vector<ValueType> sum_types_;
  Parts outputs_;
  Parts inputs_;
  Addresses given_;
  Addresses results_;
};

}  // namespace palimpsest
