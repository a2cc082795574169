#pragma once

#include <cstdint>

namespace palimpsest {

/// An element to sort: an unsigned key, and the element's position, which orders equal keys. So no
/// two entries of a line are equal, and every sort is stable.
///
/// Keys of 32 bits are stored in the upper half of a number, and positions in the lower half.
using NarrowEntry = std::uint64_t;
/// Keys of 64 bits.
struct WideEntry {
  std::uint64_t key;
  std::uint64_t place;
};

inline NarrowEntry make_entry(std::uint32_t key, std::uint64_t place) {
  return std::uint64_t{key} << 32 | place;
}
inline WideEntry make_entry(std::uint64_t key, std::uint64_t place) { return {key, place}; }
inline std::uint32_t key_of(NarrowEntry entry) { return static_cast<std::uint32_t>(entry >> 32); }
inline std::uint64_t key_of(const WideEntry& entry) { return entry.key; }
inline std::int64_t place_of(NarrowEntry entry) {
  return static_cast<std::int64_t>(entry & 0xffffffffu);
}
inline std::int64_t place_of(const WideEntry& entry) {
  return static_cast<std::int64_t>(entry.place);
}
inline bool operator<(const WideEntry& a, const WideEntry& b) {
  return a.key != b.key ? a.key < b.key : a.place < b.place;
}

/// Sorts n entries in place, from small to large. Their positions ascend. `scratch` has as many.
template <class Entry>
using SortKernel = void (*)(Entry* entries, Entry* scratch, std::int64_t n);

}  // namespace palimpsest
