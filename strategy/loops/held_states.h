#pragma once

#include <functional>

#include "checkpoint/chains/action.h"
#include "checkpoint/reverse/journal.h"
#include "strategy/loops/held_table.h"
#include "strategy/loops/loop_layout.h"

namespace palimpsest {

/// The states held while a loop runs, in memory and on disk, by the slots of a schedule. States
/// read from disk are used in place, in one of two blocks. Slot 0 holds the first state of a piece,
/// and is one of these blocks too. State 0 is never copied.
class HeldStates {
 public:
  /// `first` is state 0. `memory` has the size that `LoopLayout` was made for. `decoded` holds a
  /// decoded state; it is needed if states are encoded and some are restored.
  HeldStates(const HeldComponents& components, const Addresses& first, std::span<std::byte> memory,
             std::span<std::byte> decoded);
  HeldStates(const HeldStates&) = delete;
  HeldStates& operator=(const HeldStates&) = delete;

  const HeldComponents& components() const { return components_; }
  const LoopLayout& layout() const { return layout_; }
  /// The most states that a schedule may hold in memory, including the first one.
  std::uint32_t slots() const { return layout_.snapshots + 1; }
  /// The key of the `LoopHandover` that belongs to the states in memory. Only if the layout has a
  /// header.
  std::uint64_t& handover_number() { return *reinterpret_cast<std::uint64_t*>(memory_); }
  /// Where the last state that a step reads is stored.
  const Addresses& last() const { return last_; }

  /// True if the state of a store or restore lies in memory as it is, and no account is kept. Then
  /// states in consecutive slots lie in a row.
  bool is_plain(const ChainAction& action) const { return are_plain_ && action.slot > 0; }

  /// Where a state should be made so that the next store copies nothing, or null. Valid until the
  /// call after the next. Overwrites the previous content.
  const Addresses* place_for(const ChainAction& action) {
    return is_plain(action) ? &slot(action.slot, next_target()) : other_place_for(action);
  }
  /// Throws `ArgumentError` for a state that the codec cannot keep.
  void store(const ChainAction& action, const Addresses& state) {
    if (!is_plain(action)) return store_other(action, state);
    const Addresses& to = slot(action.slot, stored_);
    components_.block().copy(state, to);
  }
  /// Repeats a store that was carried out before, in the same memory.
  void recall(const ChainAction& action);
  /// Restores a state and returns where it is, valid until the next call.
  const Addresses& restore(const ChainAction& action) {
    return is_plain(action) ? slot(action.slot, at_hand_) : restore_other(action);
  }
  /// Begins to read the state that will be restored from disk next.
  void prefetch(const ChainAction& action);

  /// Number of stores and restores on disk so far, including those of the first state.
  std::uint64_t disk_writes() const { return disk_writes_; }
  std::uint64_t disk_reads() const { return disk_reads_; }

  /// Waits until everything is written, and releases the file; null where there is none.
  std::shared_ptr<SpillFile> finish();
  void set_file(std::shared_ptr<SpillFile> file) { file_ = std::move(file); }
  bool has_file() const { return file_ != nullptr; }

  /// Runs the steps from state `from`, which is given, to state `step`, which it makes in `to`.
  using Remake = std::function<void(std::uint32_t from, const Addresses& state, std::uint32_t step,
                                    const Addresses& to)>;
  /// Keeps an account of all states in `table`. Those on disk are in its file, and a state that is
  /// damaged there is made again. `is_given`: the table describes the states in memory already.
  void keep_account(HeldTable& table, bool is_given, Remake remake);
  /// Appends the entries of a record for all states that the steps before `left` need. Writes those
  /// that are not in the file yet.
  void save(std::uint64_t left, std::vector<JournalEntry>& entries);
  /// Brings the states of a record into memory. Returns false if one is damaged that cannot be made
  /// again.
  bool load(const std::vector<JournalEntry>& entries);
  /// Makes state `step` in `to`, from the last intact state before it.
  void make_again(std::uint32_t step, const Addresses& to);
  /// Number of states that were made again because they were damaged.
  std::uint64_t repaired() const { return repaired_; }

 private:
  struct Block {
    Addresses where;
    std::uint32_t step = none;  // number of the state in the block
    std::uint32_t slot = none;  // disk slot, while the block is written to it or read from it
  };
  static bool is_in_block(const ChainAction& action) {
    return action.tier == ChainAction::Tier::disk || action.slot == 0;
  }
  Addresses slot(std::uint32_t number) const;
  /// Likewise, in `to`, which keeps its memory.
  const Addresses& slot(std::uint32_t number, Addresses& to) const {
    const StateBlock& block = components_.codec().block();
    block.at(memory_ + layout_.slots + (number - 1) * block.stride, to);
    return to;
  }
  /// A state may still be at the last target.
  Addresses& next_target() { return targets_[turn_ = 1 - turn_]; }
  const Addresses* other_place_for(const ChainAction& action);
  void store_other(const ChainAction& action, const Addresses& state);
  const Addresses& restore_other(const ChainAction& action);
  Block& free_block();
  void settle(Block& block);
  void encode(const ChainAction& action, const Addresses& state, const Addresses& to) const;
  void begin_to_read(Block& block, const ChainAction& action);
  const Addresses& decoded(const Addresses& held);
  void note(const ChainAction& action);
  Extent write(std::uint32_t step, const Addresses& state);
  bool read(const Extent& extent, const Addresses& to);
  void repair(JournaledState& held, const Addresses& to);

  const HeldComponents& components_;
  LoopLayout layout_;
  const Addresses& first_;
  std::byte* memory_;
  bool are_plain_;  // those with a slot in memory
  Addresses last_;
  Addresses decoded_;
  Addresses at_hand_;
  Addresses stored_;
  Addresses targets_[2];
  std::size_t turn_ = 0;
  Block blocks_[2];
  HeldTable* table_ = nullptr;
  bool is_table_given_ = false;
  Remake remake_;
  std::uint64_t repaired_ = 0;
  std::uint64_t disk_writes_ = 0;
  std::uint64_t disk_reads_ = 0;
  std::size_t in_use_ = 0;           // index of the block that must stay
  std::shared_ptr<SpillFile> file_;  // destroyed first: it may still access the blocks
};

}  // namespace palimpsest
