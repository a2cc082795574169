#include "strategy/loops/advance.h"

#include <functional>
#include <utility>

namespace palimpsest {

Advance::Advance(const HeldComponents& held, Makes makes, LoopSteps& steps, const Addresses& first,
                 Addresses a, Addresses b, StateHashes* hashes)
    : held_(held),
      makes_others_(makes == Makes::states && !held.are_all()),
      makes_some_(makes == Makes::components && !held.are_all()),
      steps_(steps),
      free_{std::move(a), std::move(b)},
      state_(&first),
      hashes_(hashes) {}

void Advance::to(std::uint32_t step, const Addresses* target, const Parts* outputs) {
  if (step_ >= step) return;
  const std::uint32_t last = target != nullptr ? step - 1 : step;
  if (step_ < last) {
    const bool is_in_first =
        makes_others_ ? turn_ == 0 : !state_->empty() && state_->front() == free_[0].front();
    const std::uint32_t turn = step_ + (is_in_first ? 0 : 1);
    const auto in_turns = [&](std::uint32_t state) -> const Addresses& {
      return free_[(state - turn) % 2];
    };
    make_next(in_turns(step_ + 1), outputs);
    make_row(last, in_turns, outputs);
    turn_ = (last - turn) % 2;
  }
  if (target == nullptr) return;
  if (!makes_others_) return make_next(*target, outputs);
  turn_ = 1 - turn_;
  make_next(completed(*target, turn_), outputs);
}

/// The place of a state whose held components are made in `target`.
const Addresses& Advance::completed(const Addresses& target, std::size_t turn) {
  completed_[turn] = target;
  held_.complete(completed_[turn], free_[turn]);
  return completed_[turn];
}

/// The places of the results of a step that makes its state in `next`.
const Addresses& Advance::results(const Addresses* next, std::uint32_t step, const Parts* outputs) {
  if (makes_some_) {
    held_.choose(*next, results_);
    return results_;
  }
  if (outputs == nullptr || outputs->size() == 0) return *next;
  results_ = *next;
  outputs->append(step, results_);
  return results_;
}

void Advance::make_next(const Addresses& where, const Parts* outputs) {
  steps_.forward(step_, *state_, results(&where, step_, outputs), outputs != nullptr);
  state_ = &where;
  ++step_;
  ++steps_run_;
  if (hashes_ != nullptr) hashes_->meet(step_, *state_, held_);
  if (pause_ != nullptr) pause_(step_);
}

/// Makes the states up to `last`. State k is in `where(k)`, which is valid until the call after the
/// next.
template <class Where>
void Advance::make_row(std::uint32_t last, const Where& where, const Parts* outputs) {
  if (step_ >= last) return;
  if (hashes_ != nullptr || pause_ != nullptr) {  // each state is looked at
    while (step_ < last) make_next(where(step_ + 1), outputs);
    return;
  }
  const auto addresses = [&](std::uint32_t step) -> LoopSteps::Forward {
    const Addresses& state = where(step);
    return {state, results(&where(step + 1), step, outputs)};
  };
  steps_.forward_row(step_, last - step_, std::ref(addresses), outputs != nullptr);
  steps_run_ += last - step_;
  step_ = last;
  state_ = &where(last);
}

void Advance::make(const ChainRow& row, HeldStates& held, const Parts* outputs) {
  const std::size_t turn = turn_ + step_;
  const auto where = [&](std::uint32_t step) -> const Addresses& {
    const ChainAction store{ChainAction::Kind::store, step, row.slot + (step - row.step)};
    const Addresses& place = *held.place_for(store);
    return makes_others_ ? completed(place, (step + turn) % 2) : place;
  };
  const std::uint32_t last = row.step + row.count - 1;
  // The other components of the first state may be elsewhere.
  if (makes_others_ && step_ < last) make_next(where(step_ + 1), outputs);
  make_row(last, where, outputs);
  turn_ = (last + turn) % 2;
}

void Advance::carry_out(const ChainAction& action, const ChainAction& next, HeldStates& held,
                        const Parts* outputs, const Addresses* reversed) {
  using Kind = ChainAction::Kind;
  if (action.kind == Kind::store) return held.store(action, *state_);
  if (action.kind == Kind::restore) return restore(held.restore(action), action.step);
  // Make the state where it will be held.
  const Addresses* target = nullptr;
  if (next.kind == Kind::store) target = held.place_for(next);
  if (next.kind == Kind::reverse) target = reversed;
  to(action.step, target, outputs);
}

}  // namespace palimpsest
