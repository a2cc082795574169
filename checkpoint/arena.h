#pragma once

#include <span>

#include "checkpoint/meter.h"

namespace palimpsest {

/// One region of memory that holds everything a plan's layout places. Buffers cut from it share its
/// ownership: the region is unmapped when the arena and all its buffers are gone. Not thread-safe,
/// except for `cut` and the release of buffers.
class Arena {
 public:
  /// Part of the arena, in bytes from its start.
  struct Range {
    Bytes offset;
    Bytes bytes;
  };

  /// No arena. Only assignment and `size` are defined for it.
  Arena() = default;
  /// Maps `size` bytes. Pages are zero and take no memory before they are written. At most a page
  /// is taken from the heap instead, which is faster. `meter` counts as reserved the bytes up to
  /// the highest end ever cut or noted, until they are unmapped. Throws `EnvironmentError` when the
  /// system refuses.
  Arena(Meter meter, Bytes size);
  /// An arena in the caller's `memory`, which is aligned to `buffer_alignment` and must outlive the
  /// arena and all its buffers.
  explicit Arena(std::span<std::byte> memory);

  Bytes size() const { return size_; }
  /// A buffer at `offset`, a multiple of `buffer_alignment`. The meter counts it as live until its
  /// last holder releases it.
  Buffer cut(Bytes offset, Bytes bytes) const;
  /// The byte at `offset`, for values that are not held after a run. Report their bytes to the
  /// meter with `note`.
  std::byte* at(Bytes offset) const;
  /// Reports bytes that were used through `at`: at most `most_live` were live at once, and the
  /// highest ended at `end`.
  void note(Bytes most_live, Bytes end) const;
  /// True while a buffer cut from it is held. The memory must not be written again until then.
  bool in_use() const;
  /// Gives the arena up. Pages outside `ranges` are unmapped at once, the others when the last
  /// buffer is released. Ranges may come in any order and overlap. The arena is empty
  /// afterwards.
  void release_except(std::span<const Range> ranges);

 private:
  struct Region;
  std::shared_ptr<Region> region_;
  Bytes size_ = 0;
};

}  // namespace palimpsest
