#include "strategy/loops/held_states.h"

#include <utility>

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

HeldStates::HeldStates(const Loop& loop, const Addresses& first, std::span<std::byte> memory,
                       std::span<std::byte> decoded)
    : loop_(loop),
      layout_(std::ssize(memory), loop),
      first_(first),
      memory_(memory.data()),
      last_(loop.state().at(memory_ + layout_.last)) {
  if (!decoded.empty()) decoded_ = loop.state().at(decoded.data());
  if (!layout_.disk) return;
  const StateBlock& block = loop.codec().block();
  blocks_[0].where = block.at(memory_ + layout_.blocks);
  blocks_[1].where = block.at(memory_ + layout_.blocks + block.bytes);
}

HeldStates::~HeldStates() {
  try {
    if (file_ != nullptr) file_->finish();
  } catch (const Error&) {  // it has been thrown before, or nothing depends on it any more
  }
}

Addresses HeldStates::slot(std::uint32_t slot) const {
  const StateBlock& block = loop_.codec().block();
  return block.at(memory_ + layout_.slots + (slot - 1) * block.bytes);
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

const Addresses* HeldStates::place_for(const ChainAction& store) {
  if (!loop_.codec().is_exact()) return nullptr;
  target_ = is_in_block(store) ? free_block().where : slot(store.slot);
  return &target_;
}

void HeldStates::store(const ChainAction& store, const Addresses& state) {
  if (store.step == 0) return;
  if (!is_in_block(store)) return loop_.codec().encode(state, slot(store.slot));
  if (blocks_[in_use_].step != store.step) {
    loop_.codec().encode(state, free_block().where);
    in_use_ = 1 - in_use_;
    blocks_[in_use_].step = store.step;
  }
  if (store.tier == ChainAction::Tier::memory) return;
  Block& block = blocks_[in_use_];
  if (file_ == nullptr) file_ = loop_.disk()->open();
  block.slot = store.slot;
  file_->write(store.slot, store.step, pieces<const std::byte>(block.where, loop_.codec().block()));
}

void HeldStates::recall(const ChainAction& store) {
  if (store.step == 0 || !is_in_block(store) || blocks_[in_use_].step == store.step) return;
  in_use_ = 1 - in_use_;
  blocks_[in_use_].step = store.step;
}

void HeldStates::begin_to_read(Block& block, const ChainAction& restore) {
  block.step = restore.step;
  block.slot = restore.slot;
  file_->prefetch(restore.slot, restore.step,
                  pieces<std::byte>(block.where, loop_.codec().block()));
}

void HeldStates::prefetch(const ChainAction& restore) {
  if (restore.step == 0) return;
  for (const Block& block : blocks_) {
    if (block.step == restore.step) return;
  }
  begin_to_read(free_block(), restore);
}

const Addresses& HeldStates::restore(const ChainAction& restore) {
  if (restore.step == 0) return first_;
  if (!is_in_block(restore)) return decoded(slot(restore.slot));
  if (blocks_[in_use_].step != restore.step) {
    internal_check(restore.tier == ChainAction::Tier::disk, "a loop lost a state");
    if (blocks_[1 - in_use_].step != restore.step) begin_to_read(free_block(), restore);
    in_use_ = 1 - in_use_;
    settle(blocks_[in_use_]);
  }
  return decoded(blocks_[in_use_].where);
}

const Addresses& HeldStates::decoded(const Addresses& held) {
  if (loop_.codec().is_exact()) {
    at_hand_ = held;
    return at_hand_;
  }
  loop_.codec().decode(held, decoded_);
  return decoded_;
}

std::shared_ptr<SpillFile> HeldStates::finish() {
  if (file_ != nullptr) file_->finish();
  for (Block& block : blocks_) block.slot = none;
  return file_;
}

}  // namespace palimpsest
