#pragma once

#include "checkpoint/chains/action.h"
#include "strategy/loops/loop_layout.h"

namespace palimpsest {

/// The states that are held while a loop runs, in memory and on disk, by the slots of a schedule.
/// What is read from the disk lies in one of two blocks, from where it need not be copied: slot 0
/// is where the first state of a piece lies. State 0 is never copied at all.
class HeldStates {
 public:
  /// `first` is the first state of all. `memory` has as many bytes as `LoopLayout` was asked about;
  /// `decoded` holds a state where states are encoded, if any is to be restored.
  HeldStates(const Loop& loop, const Addresses& first, std::span<std::byte> memory,
             std::span<std::byte> decoded);
  HeldStates(const HeldStates&) = delete;
  HeldStates& operator=(const HeldStates&) = delete;

  const LoopLayout& layout() const { return layout_; }
  /// How many states a schedule may hold in memory, the first among them.
  std::uint32_t slots() const { return layout_.snapshots + 1; }
  /// By which a `LoopHandover` is found that belongs to the states in memory; not where the layout
  /// has no header.
  std::uint64_t& handover_number() { return *reinterpret_cast<std::uint64_t*>(memory_); }
  /// Where the last state is left that a step reads.
  const Addresses& last() const { return last_; }

  /// Where the state is best made that a store is to hold next, until the next call, or null. What
  /// lay there is given up.
  const Addresses* place_for(const ChainAction& action);
  /// Throws `ArgumentError` for a state that the codec cannot keep.
  void store(const ChainAction& action, const Addresses& state);
  /// A store that was carried out before, in the same memory.
  void recall(const ChainAction& action);
  /// Where the state lies then, until the next call.
  const Addresses& restore(const ChainAction& action);
  /// Begins to read what is to be restored from disk next.
  void prefetch(const ChainAction& action);

  /// Stores and restores on disk so far, of the first state too.
  std::uint64_t disk_writes() const { return disk_writes_; }
  std::uint64_t disk_reads() const { return disk_reads_; }

  /// Gives up the file, once all is written; null where there is none.
  std::shared_ptr<SpillFile> finish();
  void set_file(std::shared_ptr<SpillFile> file) { file_ = std::move(file); }
  bool has_file() const { return file_ != nullptr; }

 private:
  struct Block {
    Addresses where;
    std::uint32_t step = none;  // of the state that lies there
    std::uint32_t slot = none;  // on disk, while it is written there or read from there
  };
  static bool is_in_block(const ChainAction& action) {
    return action.tier == ChainAction::Tier::disk || action.slot == 0;
  }
  Addresses slot(std::uint32_t number) const;
  Block& free_block();
  void settle(Block& block);
  void encode(const ChainAction& action, const Addresses& state, const Addresses& to) const;
  void begin_to_read(Block& block, const ChainAction& action);
  const Addresses& decoded(const Addresses& held);

  const Loop& loop_;
  LoopLayout layout_;
  const Addresses& first_;
  std::byte* memory_;
  Addresses last_;
  Addresses decoded_;
  Addresses at_hand_;
  Addresses target_;
  Block blocks_[2];
  std::uint64_t disk_writes_ = 0;
  std::uint64_t disk_reads_ = 0;
  std::size_t in_use_ = 0;           // the block that must stay
  std::shared_ptr<SpillFile> file_;  // goes first: it may be at work in the blocks
};

}  // namespace palimpsest
