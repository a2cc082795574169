#pragma once

#include <memory>

#include "checkpoint/meter.h"

namespace palimpsest {

/// Storage that is handed on: what nobody holds any more is kept, by its size in units of 64 bytes,
/// for whoever asks for as much. From any thread; what it handed out may outlive it.
class BufferPool {
 public:
  explicit BufferPool(Meter meter);
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  /// Begins a run that holds at most `most` bytes at a time, those kept and `outside` bytes of
  /// storage that is not the pool's among them. What was handed out before and is still held is
  /// somebody else's from now on; what is kept beyond `most` goes back to the system.
  void begin(Bytes most, Bytes outside);
  /// So many of the bytes outside are given up.
  void release_outside(Bytes bytes);
  /// Storage of so many bytes, live at the meter until its last holder lets go. Where nothing of
  /// that size is kept it comes from the system, after as much of what is kept, the largest first,
  /// went back there as does not fit beside it.
  Buffer allocate(Bytes bytes);

  /// Bytes that nobody holds and that are kept. The meter does not count them.
  Bytes kept() const;
  /// Most bytes held at a time since `begin`, those outside among them.
  Bytes peak() const;
  /// How often the system was asked since `begin`.
  std::uint64_t allocations() const;

 private:
  struct State;
  struct Return;
  Meter meter_;
  std::shared_ptr<State> state_;
};

}  // namespace palimpsest
