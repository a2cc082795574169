#pragma once

#include <span>

#include "checkpoint/meter.h"

namespace palimpsest {

/// One region of memory in which everything a plan's layout places is found. Buffers cut from it
/// share its ownership: the region is unmapped when the arena and all of them are gone. Not for two
/// threads at once, except `cut` and the release of buffers.
class Arena {
 public:
  /// Part of the arena, in bytes from its start.
  struct Range {
    Bytes offset;
    Bytes bytes;
  };

  /// No arena; everything but assignment and `size` is then undefined.
  Arena() = default;
  /// Maps `size` bytes. Pages are zero and take no memory before they are written: `meter` counts
  /// as reserved, until they are unmapped, the bytes up to the highest end ever cut or noted.
  /// Throws `EnvironmentError` when the system refuses.
  Arena(Meter meter, Bytes size);
  /// An arena in `memory`, aligned to `buffer_alignment`, which is somebody else's and outlives it
  /// and all its buffers.
  explicit Arena(std::span<std::byte> memory);

  Bytes size() const { return size_; }
  /// A buffer at `offset`, live at the meter until its last holder lets go; `offset` is a multiple
  /// of `buffer_alignment`.
  Buffer cut(Bytes offset, Bytes bytes) const;
  /// The byte at `offset`, for values that nobody holds after a run. What they take in it is told
  /// to the meter by `note`.
  std::byte* at(Bytes offset) const;
  /// Says that, of bytes that were not cut, so many were live at once, the highest ending at `end`.
  void note(Bytes most_live, Bytes end) const;
  /// True while some buffer cut from it is held, so that it must not be written again.
  bool in_use() const;
  /// Gives the arena up: pages that lie in none of `ranges` go back to the system, the others when
  /// the buffers that hold the region let go. Ranges may come in any order and overlap. The arena
  /// is empty afterwards.
  void release_except(std::span<const Range> ranges);

 private:
  struct Region;
  std::shared_ptr<Region> region_;
  Bytes size_ = 0;
};

}  // namespace palimpsest
