#pragma once

#include <algorithm>
#include <cstddef>

#include "autodiff/bytes.h"

namespace palimpsest {

/// Bytes of memory that a cache of programs keeps, about.
inline constexpr Bytes most_cached = 64_MiB;

/// The bytes of all entries.
template <class List, class BytesOf>
Bytes bytes_of_all(const List& list, BytesOf bytes_of) {
  Bytes bytes = 0;
  for (const auto& entry : list) bytes += bytes_of(entry);
  return bytes;
}

/// Lets go of those entries of a list, the one used last first, that are more than `most` or take
/// more than `most_cached` bytes together. The first `least` stay: they are at work.
template <class List, class BytesOf>
void keep_within_limit(List& list, std::size_t least, std::size_t most, BytesOf bytes_of) {
  Bytes bytes = 0;
  std::size_t count = 0;
  for (auto entry = list.begin(); entry != list.end(); ++entry) {
    bytes += bytes_of(*entry);
    if (++count <= least || (count <= most && bytes <= most_cached)) continue;
    list.erase(entry, list.end());
    return;
  }
}

}  // namespace palimpsest
