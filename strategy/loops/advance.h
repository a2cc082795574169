#pragma once

#include "strategy/loops/held_states.h"
#include "strategy/loops/loop_handover.h"
#include "strategy/loops/loop_steps.h"

namespace palimpsest {

/// Runs steps forward; the state at hand lies where it was made, or where it was restored.
class Advance {
 public:
  /// States are made in `a` and `b` unless they are to be somewhere else. Compares them with
  /// `hashes`, if these are given.
  Advance(const Loop& loop, LoopSteps& steps, const Addresses& first, Addresses a, Addresses b,
          StateHashes* hashes);

  const Addresses& state() const { return state_; }
  /// Steps run so far.
  std::uint64_t steps_run() const { return steps_run_; }
  void restore(const Addresses& state, std::uint32_t step);
  /// Runs the steps before `step`; the last of them makes the state in `target` when there is one.
  void to(std::uint32_t step, const Addresses* target, const Parts* outputs = nullptr);

  /// Carries out an action that reverses no step, and is followed by `next`. A state that is to be
  /// reversed next is made in `reversed`, if that is given.
  void carry_out(const ChainAction& action, const ChainAction& next, HeldStates& held,
                 const Parts* outputs = nullptr, const Addresses* reversed = nullptr);

 private:
  const Loop& loop_;
  LoopSteps& steps_;
  Addresses free_[2];
  Addresses state_;
  Addresses results_;
  std::uint32_t step_ = 0;
  std::uint64_t steps_run_ = 0;
  StateHashes* hashes_;
};

}  // namespace palimpsest
