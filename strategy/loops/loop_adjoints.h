#pragma once

#include "strategy/loops/loop.h"

namespace palimpsest {

/// Where the adjoints lie that the backward part of a loop carries from step to step, and those
/// that it returns.
class LoopAdjoints {
 public:
  LoopAdjoints(const LoopGradient& gradient, std::uint32_t steps, const KernelCall& call, Cut& cut);

  /// The adjoints of what step `step` makes, and the sums so far.
  const Addresses& given(std::uint32_t step);
  /// Where those of what it reads are to be made, which are the next ones' then. After `given`.
  const Addresses& results(std::uint32_t step);
  /// When all steps have been run; `untouched` as in `LoopSteps`.
  void finish(const std::vector<bool>& untouched);

 private:
  const LoopGradient& gradient_;
  std::uint32_t steps_;
  Addresses carried_;    // adjoints of the state at hand
  Addresses blocks_[2];  // where these are made in turns
  Addresses first_;      // where those of the first state are to be returned, or null
  Addresses sums_[2];    // so far, and where the next ones are made
  std::vector<ValueType> sum_types_;
  Parts outputs_;
  Parts inputs_;
  Addresses given_;
  Addresses results_;
};

}  // namespace palimpsest
