#pragma once

#include <memory>

#include "checkpoint/meter.h"

namespace palimpsest {

/// Recycles storage. Released buffers are kept, by their size in units of 64 bytes, for later
/// requests of the same size. Thread-safe. Buffers may outlive the pool.
class BufferPool {
 public:
  explicit BufferPool(Meter meter);
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  /// Begins a run that holds at most `most` bytes at a time. This includes the kept bytes and
  /// `outside` bytes of storage that does not belong to the pool. Buffers that were handed out
  /// before and are still held no longer count. Kept bytes beyond `most` go back to the system.
  void begin(Bytes most, Bytes outside);
  /// Reduces the bytes outside.
  void release_outside(Bytes bytes);
  /// Storage of so many bytes, counted by the meter as live until its last holder releases it. When
  /// no kept buffer has that size, it comes from the system. Before that, kept buffers go back to
  /// the system, the largest first, until the new one fits.
  Buffer allocate(Bytes bytes);

  /// Bytes of released buffers that are kept. The meter does not count them.
  Bytes kept() const;
  /// Most bytes held at a time since `begin`, including those outside.
  Bytes peak() const;
  /// Number of requests to the system since `begin`.
  std::uint64_t allocations() const;

 private:
  struct State;
  struct Return;
  Meter meter_;
  std::shared_ptr<State> state_;
};

}  // namespace palimpsest
