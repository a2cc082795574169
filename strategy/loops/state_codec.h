#pragma once

#include "checkpoint/stores/codec.h"
#include "checkpoint/stores/spill_file.h"
#include "strategy/loops/loop_memory.h"

namespace palimpsest {

/// How the states of a loop are stored while they are held.
class StateCodec {
 public:
  StateCodec(std::span<const ValueType> types, Codec codec);

  bool is_exact() const { return codec_ == Codec::exact; }
  /// The memory layout of an encoded state, and the pieces of its record.
  const StateBlock& block() const { return block_; }
  const std::vector<RecordPiece>& record() const { return record_; }

  /// Neither copies where source and destination are the same.
  void encode(const Addresses& state, const Addresses& held) const;
  void decode(const Addresses& held, const Addresses& state) const;

 private:
  Codec codec_;
  StateBlock state_;
  StateBlock block_;
  std::vector<DType> dtypes_;  // of the state
  std::vector<RecordPiece> record_;
};

}  // namespace palimpsest
