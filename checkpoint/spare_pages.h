#pragma once

#include <map>
#include <set>
#include <utility>

#include "checkpoint/pages.h"

namespace palimpsest {

/// A cache of unused mapped pages. Not thread-safe.
class SparePages {
 public:
  Bytes bytes() const { return bytes_; }
  /// So many bytes in one piece, a multiple of the page size. They come from the smallest piece
  /// that is large enough, or from the largest piece extended by fresh pages, or are all fresh. For
  /// each fresh page a cached one goes back to the system, while there are any. So cached and used
  /// pages together never exceed the most pages used at once. Null when the system has none.
  std::byte* take(Bytes bytes) noexcept;
  /// Caches a piece, or gives it back to the system when there is no memory to record it.
  void give(std::byte* pages, Bytes bytes) noexcept;
  /// Gives pages back to the system until at most so many bytes are left.
  void trim(Bytes most) noexcept;

 private:
  using BySize = std::set<std::pair<Bytes, std::byte*>>;

  std::byte* grow_largest(Bytes bytes) noexcept;
  void remove(BySize::iterator piece) noexcept;

  std::map<std::byte*, Bytes> pieces_;  // no two of them adjacent
  BySize by_size_;
  Bytes bytes_ = 0;
};

}  // namespace palimpsest
