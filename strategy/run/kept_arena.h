#pragma once

#include "checkpoint/arena.h"
#include "strategy/compile/instructions.h"

namespace palimpsest {

/// The arena of the last run, kept for the next run.
class KeptArena {
 public:
  /// An arena of which no part is held. Returns the last one if it is free and has the right size,
  /// or is larger and `let_larger_do` was called. Null if the layout is empty or present values
  /// take more than 1/64 of the layout. Present values are copied into the layout, so they would
  /// need their bytes twice. Without an arena, each value gets its own storage.
  const Arena* get(const Instructions& instructions, const Meter& meter);
  /// Returns the arena to the system, except pages of values of the last run that are still held.
  void give_up();
  Bytes size() const { return arena_.size(); }
  /// True while a value of the last run is held.
  bool is_held() const { return arena_.size() > 0 && arena_.in_use(); }
  /// From now on also reuses a larger arena, for programs of several sizes that run in turn.
  void let_larger_do() { larger_does_ = true; }

 private:
  Arena arena_;
  bool larger_does_ = false;
  // Ranges that may be held: results, and values given back by a run that stopped.
  std::vector<Arena::Range> held_;
};

}  // namespace palimpsest
