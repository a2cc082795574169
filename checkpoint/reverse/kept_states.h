#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/chains/action.h"
#include "checkpoint/meter.h"
#include "checkpoint/reverse/extent_file.h"
#include "checkpoint/reverse/snapshot_codec.h"
#include "checkpoint/reverse/stored_object.h"

namespace palimpsest {

/// A state that is kept in memory, in a file, or both.
struct KeptState {
  bool is_kept = false;  ///< otherwise the slot is free
  std::uint64_t step = 0;
  Bytes bytes = 0;     ///< as it is kept; a state may have none
  Buffer memory = {};  ///< null if it is only in the file
  Bytes room = 0;      ///< of the memory
  Extent extent = {};  ///< in the file, if it was written
  bool is_encoded = false;
  Bytes charged = 0;  ///< what `held_bytes` counts for it, by bytes
};

/// The states that are kept while a chain runs, by tiers and slots. In memory there are as many
/// slots as the budget allows, of one size each or, by bytes, of the sizes of the states.
class KeptStates {
 public:
  struct Settings {
    SnapshotCodec* codec = nullptr;  ///< null: none
    bool encodes_memory = false;     ///< otherwise only states in the file are encoded
    Bytes largest_state = 0;
    Bytes slot_bytes = 0;        ///< of memory for each state; 0: by bytes
    std::uint32_t slots = 0;     ///< of this size, at most
    ExtentFile* file = nullptr;  ///< for the disk tier and for the journal
    Where where;
  };

  /// The state that is saved and loaded must outlive this object.
  KeptStates(StoredObject& state, const Settings& settings, Meter meter);
  ~KeptStates();
  KeptStates(const KeptStates&) = delete;
  KeptStates& operator=(const KeptStates&) = delete;

  using Tier = ChainAction::Tier;
  std::vector<KeptState>& tier(Tier tier) { return tiers_[tier == Tier::disk ? 1 : 0]; }

  /// Keeps the current state, which is state `step`. Replaces what is in the slot.
  void store(Tier tier, std::uint32_t slot, std::uint64_t step);
  /// Makes a kept state the current one. Returns false if it is damaged.
  bool load(const KeptState& kept);
  /// Whether the current state is the one that was kept, as far as its hash tells.
  bool matches(const KeptState& kept);
  /// Whether states that are made again have the bytes of those that were kept.
  bool is_exact() const { return settings_.codec == nullptr || settings_.codec->is_exact(); }
  /// Keeps the current state again in place of a damaged copy of it.
  void replace(KeptState& kept, Tier tier);

  /// Prepares the current state to be kept. Returns the bytes that it will take in memory.
  Bytes prepare(std::uint64_t step);
  /// Keeps the prepared state in a slot of its own, after all others. `charged` is what
  /// `held_bytes` counts for it, at least what `prepare` returned.
  void push(std::uint64_t step, Bytes charged);
  void drop(KeptState& kept);
  /// Bytes of all states in memory, by bytes.
  Bytes held_bytes() const { return held_bytes_; }

  /// Writes a state that is only in memory to the file.
  void write(KeptState& kept);
  /// Brings a state that is only in the file into memory. Returns false if it is damaged.
  bool read(KeptState& kept);

  std::uint64_t disk_writes() const { return disk_writes_; }
  std::uint64_t disk_reads() const { return disk_reads_; }

  /// Bytes of memory for a block of so many bytes.
  static Bytes memory_of(Bytes bytes);

 private:
  void require_size(std::uint64_t step) const;
  /// The current state in encoded form. Throws `ArgumentError` if a lossy codec does not know where
  /// its numbers begin.
  std::span<const std::byte> encoded();
  Extent write_state(std::uint64_t step, bool encodes);
  /// Memory for a state in a slot.
  Buffer take_memory(std::size_t slot, Bytes bytes);
  void save_to_memory(KeptState& kept);

  StoredObject& state_;
  Settings settings_;
  Bytes header_bytes_;  // of a state, if a codec is lossy
  Meter meter_;
  std::vector<KeptState> tiers_[2];
  std::vector<Buffer> slabs_;  // of several slots each
  Buffer plain_;               // with a codec: a state
  Buffer encoded_;             // with a codec: what it becomes
  Bytes prepared_ = 0;
  Bytes held_bytes_ = 0;
  std::uint64_t disk_writes_ = 0;
  std::uint64_t disk_reads_ = 0;
};

}  // namespace palimpsest
