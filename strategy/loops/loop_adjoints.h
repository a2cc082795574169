#pragma once

#include <algorithm>

#include "strategy/loops/loop_division.h"

namespace palimpsest {

/// Which results of a reversed step are written over what it reads. By carried adjoint: the one of
/// the previous state, over that of the next. By requested captured value: the new sum, over the
/// sum so far. A loop with a journal writes none there, because a step that is stopped must leave
/// what the next record holds.
struct AdjointsInPlace {
  AdjointsInPlace(const LoopGradient& gradient, int threads, const LoopDivision& division);

  std::vector<bool> carried;
  std::vector<bool> sums;
};
/// The second places of the others, adjoints before sums: these are made in turns in one of two.
StateBlock made_in_turns(const LoopGradient& gradient, const AdjointsInPlace& in_place);

/// Where a loop's backward part stores the adjoints that it carries from step to step, and those
/// that it returns.
class LoopAdjoints {
 public:
  LoopAdjoints(const LoopGradient& gradient, std::uint32_t steps, const LoopDivision& division,
               const KernelCall& call, Cut& cut);

  /// The adjoints of the results of step `step`, and the sums so far. The first step must be
  /// reversed before those of others are asked for, since its adjoints come from outside.
  const Addresses& given(std::uint32_t step) {
    Addresses& list = turns_[(steps_ - step) % 2].given;
    auto next = list.begin() + std::ssize(initial_);
    outputs_.for_each(step, [&](std::byte* each) { *next++ = each; });
    return list;
  }
  /// Where the adjoints of the inputs of step `step` are made.
  const Addresses& results(std::uint32_t step) {
    Addresses& list = turns_[(steps_ - step) % 2].results;
    auto next = list.begin() + std::ssize(initial_);
    inputs_.for_each(step, [&](std::byte* each) { *next++ = each; });
    if (step == 0) return_first(list);
    return list;
  }
  /// The adjoints of so many steps are made: the next reversal gets them.
  void reversed(std::uint32_t count = 1) { continue_with(left_ - count); }
  /// Calls `reverse(step, count)` for rows of steps down from `step`, until only `end` are left.
  template <class Reverse>
  void reverse_rows(std::uint32_t end, const Reverse& reverse) {
    while (left_ > end) {
      const std::uint32_t step = left_ - 1;
      // The adjoints of the last step come from outside, and the first state is elsewhere.
      const bool is_alone = left_ == steps_ || step == 0;
      const std::uint32_t count = is_alone ? 1 : left_ - std::max(end, 1u);
      reverse(step, count);
      reversed(count);
    }
  }
  /// Call when all steps have been reversed; `untouched` as in `LoopSteps`.
  void finish(const std::vector<bool>& untouched);

  // For a journal:
  using Pieces = std::vector<std::span<std::byte>>;
  /// The adjoints of the current state, and the sums so far.
  Pieces carried() const { return spans_of(carried_addresses(), gradient_.adjoints().sizes); }
  Pieces sums() const { return spans_of(sums_so_far(), gradient_.sums().sizes); }
  /// The adjoints of outputs that are given, and those of inputs that are returned.
  const Parts& outputs() const { return outputs_; }
  const Parts& inputs() const { return inputs_; }
  /// Continues where `left` steps are still to be reversed. The contents of `carried` and `sums`
  /// must be read afterwards.
  void continue_with(std::uint32_t left) {
    // The first step alone has adjoints from outside.
    if (left_ == steps_ && left < steps_) std::ranges::copy(blocks_[0], turns_[1].given.begin());
    left_ = left;
  }

 private:
  /// What a step reads and makes. Every other step has the same, except for its outputs and inputs.
  struct Turn {
    Addresses given;
    Addresses results;
  };
  const Addresses& carried_addresses() const {
    return left_ == steps_ ? initial_ : blocks_[(steps_ - left_) % 2];
  }
  const Addresses& sums_so_far() const { return sums_[(steps_ - left_) % 2]; }
  void return_first(Addresses& results) const;

  const LoopGradient& gradient_;
  std::uint32_t steps_;
  std::uint32_t left_;   // steps that are not reversed yet
  Addresses initial_;    // adjoints of the last state
  Addresses blocks_[2];  // where those of other states are made, in turns or in place
  Addresses first_;      // where those of the first state are returned, or null
  Addresses sums_[2];    // so far, and where the next ones are made, in turns or in place
  Few<ValueType> sum_types_;
  Parts outputs_;
  Parts inputs_;
  Turn turns_[2];
};

}  // namespace palimpsest
