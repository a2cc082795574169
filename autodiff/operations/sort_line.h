#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "autodiff/dtype.h"
#include "autodiff/kernels/kernels.h"
#include "autodiff/kernels/sort.h"

/// The order of elements that sorting and searching share. NaN is larger than every number, all NaN
/// are equal, and −0 equals 0.
namespace palimpsest {

/// An unsigned number for each element, in the order of the elements.
template <class T>
using SortKey = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

/// The key of every NaN.
template <class Key>
constexpr Key nan_key = std::numeric_limits<Key>::max();

template <class T>
SortKey<T> sort_key(T x) {
  using Key = SortKey<T>;
  constexpr Key top = Key{1} << (sizeof(Key) * 8 - 1);
  if constexpr (std::is_integral_v<T>) {
    return static_cast<Key>(static_cast<std::make_signed_t<Key>>(x)) ^ top;
  } else if constexpr (std::is_class_v<T>) {
    return sort_key(static_cast<float>(x));
  } else {
    if (x != x) return nan_key<Key>;
    const Key bits = std::bit_cast<Key>(x + T(0));  // −0 + 0 is 0
    return (bits & top) != 0 ? ~bits : bits | top;
  }
}

/// The entries that are sorted for a line of such elements.
template <class T>
using SortEntry = std::conditional_t<sizeof(T) == 8, WideEntry, NarrowEntry>;

/// The most elements that are sorted: positions take 32 bits.
inline constexpr std::int64_t longest_line = 0xffffffff;

inline void sort_entries(NarrowEntry* entries, NarrowEntry* scratch, std::int64_t n) {
  kernels().sort_narrow(entries, scratch, n);
}
inline void sort_entries(WideEntry* entries, WideEntry* scratch, std::int64_t n) {
  kernels().sort_wide(entries, scratch, n);
}

}  // namespace palimpsest
