#pragma once

#include "checkpoint/stores/codec.h"
#include "checkpoint/stores/spill_file.h"
#include "strategy/loops/loop_memory.h"

namespace palimpsest {

/// How the states of a loop are kept while they are held.
class StateCodec {
 public:
  StateCodec(std::span<const ValueType> types, Codec codec);

  bool is_exact() const { return codec_ == Codec::exact; }
  /// How an encoded state lies in memory, and of what a record of it consists.
  const StateBlock& block() const { return block_; }
  const std::vector<RecordPiece>& record() const { return record_; }

  /// Either copies nothing where the two are the same.
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
