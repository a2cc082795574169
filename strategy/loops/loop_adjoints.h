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
  /// Where the adjoints of the inputs of step `step` are made. Call it after `given`.
  const Addresses& results(std::uint32_t step);
  /// They are made: the next reversal gets them.
  void reversed();
  /// Call when all steps have been reversed; `untouched` as in `LoopSteps`.
  void finish(const std::vector<bool>& untouched);

  // For a journal:
  using Pieces = std::vector<std::span<std::byte>>;
  /// The adjoints of the current state, and the sums so far.
  Pieces carried() const { return spans_of(carried_, gradient_.adjoints().sizes); }
  Pieces sums() const { return spans_of(sums_[0], gradient_.sums().sizes); }
  /// The adjoints of outputs that are given, and those of inputs that are returned.
  const Parts& outputs() const { return outputs_; }
  const Parts& inputs() const { return inputs_; }
  /// Continues where `left` steps are still to be reversed. The contents of `carried` and `sums`
  /// must be read afterwards.
  void continue_with(std::uint32_t left);

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
