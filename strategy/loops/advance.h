#pragma once

#include <functional>
#include <utility>

#include "strategy/loops/held_states.h"
#include "strategy/loops/loop_handover.h"
#include "strategy/loops/loop_steps.h"

namespace palimpsest {

/// Runs steps forward. The current state stays where it was made or restored.
class Advance {
 public:
  /// Steps make whole states, or held components only.
  enum class Makes : std::uint8_t { states, components };
  /// Makes states in `a` and `b` in turns unless a target is given; also components that are not
  /// held. Compares what is held with `hashes` if given.
  Advance(const HeldComponents& held, Makes makes, LoopSteps& steps, const Addresses& first,
          Addresses a, Addresses b, StateHashes* hashes);

  /// The addresses stay the caller's, or those of `HeldStates`.
  const Addresses& state() const { return *state_; }
  /// Its number.
  std::uint32_t step() const { return step_; }
  /// Calls `pause` after every step with the number of the state that it made.
  void set_pause(std::function<void(std::uint32_t)> pause) { pause_ = std::move(pause); }
  /// Continues with state `step`, which `load` reads into the memory that it is given.
  template <class F>
  void continue_with(std::uint32_t step, F load) {
    restore(free_[0], step);
    turn_ = 0;
    load(*state_);
  }
  /// Number of steps run so far.
  std::uint64_t steps_run() const { return steps_run_; }
  /// Continues with state `step`, which is in `state`. It must stay there until the next steps.
  void restore(const Addresses& state, std::uint32_t step) {
    state_ = &state;
    step_ = step;
  }
  /// Runs the steps before `step`. The last one makes its state in `target`, if given.
  void to(std::uint32_t step, const Addresses* target, const Parts* outputs = nullptr);

  /// Carries out an action other than a reversal. `next` is the action after it. A state that is
  /// reversed next is made in `reversed`, if given.
  void carry_out(const ChainAction& action, const ChainAction& next, HeldStates& held,
                 const Parts* outputs = nullptr, const Addresses* reversed = nullptr);
  /// Makes the states of `row` where they are held. The current state is the one before, and is
  /// held.
  void make(const ChainRow& row, HeldStates& held, const Parts* outputs = nullptr);

 private:
  void make_next(const Addresses& where, const Parts* outputs);
  template <class Where>
  void make_row(std::uint32_t last, const Where& where, const Parts* outputs);
  const Addresses& results(const Addresses* next, std::uint32_t step, const Parts* outputs);
  const Addresses& completed(const Addresses& target, std::size_t turn);

  const HeldComponents& held_;
  bool makes_others_;  // components that are not held
  bool makes_some_;    // held components alone
  LoopSteps& steps_;
  Addresses free_[2];
  std::size_t turn_ = 1;    // which of them has the other components of the current state
  Addresses completed_[2];  // places with other components in the free blocks
  const Addresses* state_;
  Addresses results_;
  std::uint32_t step_ = 0;
  std::uint64_t steps_run_ = 0;
  StateHashes* hashes_;
  std::function<void(std::uint32_t)> pause_;
};

}  // namespace palimpsest
