#pragma once

#include <map>
#include <set>
#include <utility>

#include "checkpoint/pages.h"

namespace palimpsest {

/// Mapped pages that nobody uses. For one thread at a time.
class SparePages {
 public:
  Bytes bytes() const { return bytes_; }
  /// So many bytes in one piece, a multiple of a page: of the smallest piece that has them, or else
  /// the largest one, with fresh pages behind it, or else fresh pages. For each fresh page another
  /// one goes back to the system, while there are any: pages here and elsewhere together never are
  /// more than were used at once. Null where the system has none.
  std::byte* take(Bytes bytes) noexcept;
  /// Keeps a piece, or gives it back to the system where there is no memory to note it.
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
