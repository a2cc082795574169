#pragma once

#include "checkpoint/arena.h"
#include "strategy/compile/instructions.h"

namespace palimpsest {

/// The arena of the last run, kept for the next.
class KeptArena {
 public:
  /// An arena that nobody holds a part of: the last one when it is free and has the size, or is
  /// larger and that does. None where much is present: values that are present have a place in the
  /// layout too, where a few are copied; with many, an arena of the layout's size beside them would
  /// be too much, and each value gets its own storage.
  const Arena* get(const Instructions& instructions, const Meter& meter);
  /// What the last run left and is still held keeps its pages, the rest is given back.
  void give_up();
  Bytes size() const { return arena_.size(); }
  /// Lets larger ones do from here on: for programs of several sizes that run in turn.
  void let_larger_do() { larger_does_ = true; }

 private:
  Arena arena_;
  bool larger_does_ = false;
  std::vector<Arena::Range> held_;  // what may be: results, and what a run that stopped gave back
};

}  // namespace palimpsest
