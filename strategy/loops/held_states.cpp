#include "strategy/loops/held_states.h"

#include <string>
#include <utility>

#include "autodiff/error.h"

namespace palimpsest {
namespace {

template <class Byte>
std::vector<std::span<Byte>> pieces(const Addresses& where, const StateBlock& block) {
  std::vector<std::span<Byte>> spans;
  for (std::size_t i = 0; i < where.size(); ++i) {
    spans.emplace_back(where[i], static_cast<std::size_t>(block.sizes[i]));
  }
  return spans;
}

}  // namespace

HeldStates::HeldStates(const HeldComponents& components, const Addresses& first,
                       std::span<std::byte> memory, std::span<std::byte> decoded)
    : components_(components),
      layout_(std::ssize(memory), components),
      first_(first),
      memory_(memory.data()),
      are_plain_(!layout_.disk && components.codec().is_exact() && components.block().bytes > 0),
      last_(components.block().at(memory_ + layout_.last)) {
  const StateBlock& state = components.block();
  if (std::ssize(decoded) == state.bytes) decoded_ = state.at(decoded.data());
  if (!layout_.disk) return;
  const StateBlock& block = components.codec().block();
  blocks_[0].where = block.at(memory_ + layout_.blocks);
  blocks_[1].where = block.at(memory_ + layout_.blocks + block.bytes);
}

Addresses HeldStates::slot(std::uint32_t number) const {
  Addresses addresses;
  slot(number, addresses);
  return addresses;
}

void HeldStates::settle(Block& block) {
  if (block.slot != none) file_->wait(std::exchange(block.slot, none));
}

HeldStates::Block& HeldStates::free_block() {
  Block& block = blocks_[1 - in_use_];
  settle(block);
  block.step = none;
  return block;
}

void HeldStates::encode(const ChainAction& action, const Addresses& state,
                        const Addresses& to) const {
  try {
    components_.codec().encode(state, to);
  } catch (const ArgumentError& error) {
    const StepBody& body = components_.loop().body();
    throw ArgumentError(body.name(),
                        "the state before step " + std::to_string(action.step) +
                            " cannot be stored with LoopOptions::codec: " + error.what(),
                        body.where);
  }
}

const Addresses* HeldStates::other_place_for(const ChainAction& action) {
  if (!components_.codec().is_exact()) return nullptr;
  Addresses& target = next_target();
  if (is_in_block(action)) {
    target = free_block().where;
  } else {
    if (table_ != nullptr) table_->drop(table_->at(action.tier, action.slot));
    slot(action.slot, target);
  }
  return &target;
}

void HeldStates::store_other(const ChainAction& action, const Addresses& state) {
  if (action.tier == ChainAction::Tier::disk) ++disk_writes_;
  if (action.step == 0) return;
  if (!is_in_block(action)) {
    encode(action, state, slot(action.slot, stored_));
    return note(action);
  }
  if (blocks_[in_use_].step != action.step) {
    encode(action, state, free_block().where);
    in_use_ = 1 - in_use_;
    blocks_[in_use_].step = action.step;
  }
  note(action);
  if (action.tier == ChainAction::Tier::memory || table_ != nullptr) return;
  Block& block = blocks_[in_use_];
  if (file_ == nullptr) file_ = components_.disk()->open();
  block.slot = action.slot;
  file_->write(action.slot, action.step,
               pieces<const std::byte>(block.where, components_.codec().block()));
}

void HeldStates::recall(const ChainAction& action) {
  if (is_table_given_) return;
  if (action.step != 0) note(action);
  if (action.step == 0 || !is_in_block(action) || blocks_[in_use_].step == action.step) return;
  in_use_ = 1 - in_use_;
  blocks_[in_use_].step = action.step;
}

void HeldStates::begin_to_read(Block& block, const ChainAction& action) {
  internal_check(file_ != nullptr, "a loop reads a state that it has not written");
  block.step = action.step;
  block.slot = action.slot;
  file_->prefetch(action.slot, action.step,
                  pieces<std::byte>(block.where, components_.codec().block()));
}

void HeldStates::prefetch(const ChainAction& action) {
  if (action.step == 0 || table_ != nullptr) return;
  for (const Block& block : blocks_) {
    if (block.step == action.step) return;
  }
  begin_to_read(free_block(), action);
}

const Addresses& HeldStates::restore_other(const ChainAction& action) {
  if (action.tier == ChainAction::Tier::disk) ++disk_reads_;
  if (action.step == 0) return first_;
  if (!is_in_block(action)) {
    internal_check(table_ == nullptr || table_->at(action.tier, action.slot).step == action.step,
                   "a journal lost a state");
    return decoded(slot(action.slot, components_.codec().is_exact() ? at_hand_ : stored_));
  }
  if (blocks_[in_use_].step != action.step) {
    internal_check(action.tier == ChainAction::Tier::disk, "a loop lost a state");
    if (table_ != nullptr) {
      Block& block = free_block();
      JournaledState& held = table_->at(action.tier, action.slot);
      internal_check(held.step == action.step, "a journal lost a state");
      if (!read(held.extent, block.where)) repair(held, block.where);
      block.step = action.step;
    } else if (blocks_[1 - in_use_].step != action.step) {
      begin_to_read(free_block(), action);
    }
    in_use_ = 1 - in_use_;
    settle(blocks_[in_use_]);
  }
  return decoded(blocks_[in_use_].where);
}

const Addresses& HeldStates::decoded(const Addresses& held) {
  if (components_.codec().is_exact()) {
    if (&held != &at_hand_) at_hand_ = held;
    return at_hand_;
  }
  components_.codec().decode(held, decoded_);
  return decoded_;
}

std::shared_ptr<SpillFile> HeldStates::finish() {
  if (table_ != nullptr) {
    table_->in_use = in_use_;
    const std::uint32_t step = layout_.disk ? blocks_[in_use_].step : std::uint32_t{none};
    if (table_->block().step != step) table_->set(table_->block(), {.step = step});
  }
  if (file_ != nullptr) file_->finish();
  for (Block& block : blocks_) block.slot = none;
  return std::exchange(file_, nullptr);
}

}  // namespace palimpsest
