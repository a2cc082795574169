#include "strategy/loops/advance.h"

#include <utility>

namespace palimpsest {

Advance::Advance(const Loop& loop, LoopSteps& steps, const Addresses& first, Addresses a,
                 Addresses b, StateHashes* hashes)
    : loop_(loop),
      steps_(steps),
      free_{std::move(a), std::move(b)},
      state_(&first),
      hashes_(hashes) {}

void Advance::to(std::uint32_t step, const Addresses* target, const Parts* outputs) {
  while (step_ < step) {
    const bool last = step_ + 1 == step && target != nullptr;
    const bool is_in_first = !state_->empty() && state_->front() == free_[0].front();
    const Addresses& next = last ? *target : free_[is_in_first ? 1 : 0];
    const bool has_outputs = outputs != nullptr && outputs->size() > 0;
    if (has_outputs) {
      results_ = next;
      outputs->append(step_, results_);
    }
    steps_.forward(step_, *state_, has_outputs ? results_ : next, outputs != nullptr);
    state_ = &next;
    ++step_;
    ++steps_run_;
    if (hashes_ != nullptr) hashes_->meet(step_, *state_, loop_);
    if (pause_ != nullptr) pause_(step_);
  }
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
