#pragma once

#include "checkpoint/buffer_pool.h"
#include "strategy/base/options.h"
#include "strategy/run/executor.h"
#include "strategy/run/kept_arena.h"

namespace palimpsest {

/// The memory that runs of one engine or runner use, and the part of it kept for the next run.
class RunMemory {
 public:
  const Meter& meter() const { return meter_; }
  /// Memory for a run by `executor`. Valid until the next call.
  Executor::Memory get(Executor& executor, const RunOptions& options);
  /// Most bytes that a run by `executor` takes.
  static Bytes peak_of(Executor& executor, const RunOptions& options);
  /// Most bytes that the run of the last `get` takes.
  Bytes predicted_peak() const { return predicted_peak_; }
  /// Bytes that are kept for the next run.
  Bytes kept() const { return arena_.size() + (pool_ != nullptr ? pool_->kept() : 0); }
  /// Returns the kept memory to the system, except what is still held.
  void give_up();
  /// See `KeptArena::let_larger_do`.
  void share_arena() { arena_.let_larger_do(); }
  /// From now on gives no arena: each value has storage of its own.
  void use_no_arena() { has_arena_ = false; }
  /// Returns the arena to the system, except pages of values that are still held, if there are any.
  void give_up_held_arena() {
    if (arena_.is_held()) arena_.give_up();
  }

 private:
  Meter meter_;
  KeptArena arena_;
  bool has_arena_ = true;
  std::unique_ptr<BufferPool> pool_;
  Bytes predicted_peak_ = 0;
};

}  // namespace palimpsest
