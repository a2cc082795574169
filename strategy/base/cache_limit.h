#pragma once

#include <algorithm>
#include <cstddef>

#include "autodiff/bytes.h"

namespace palimpsest {

/// Approximate limit, in bytes, of what a cache of programs keeps.
inline constexpr Bytes most_cached = 64_MiB;

/// Total bytes of all entries.
template <class List, class BytesOf>
Bytes bytes_of_all(const List& list, BytesOf bytes_of) {
  Bytes bytes = 0;
  for (const auto& entry : list) bytes += bytes_of(entry);
  return bytes;
}

/// Erases the entries of a list beyond `most` entries or `most_cached` bytes in total. The list is
/// ordered by most recent use. The first `least` entries stay, since they are in use.
template <class List, class BytesOf>
void keep_within_limit(List& list, std::size_t least, std::size_t most, BytesOf bytes_of) {
  Bytes bytes = 0;
  std::size_t count = 0;
  for (auto entry = list.begin(); entry != list.end(); ++entry) {
    bytes += bytes_of(*entry);
    ++count;
    if (count <= least || (count <= most && bytes <= most_cached)) continue;
    list.erase(entry, list.end());
    return;
  }
}

}  // namespace palimpsest
