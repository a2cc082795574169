#include <algorithm>
#include <utility>

#include "autodiff/kernels/level.h"

namespace palimpsest::PALIMPSEST_LEVEL {
namespace {

using SortIndex = std::int64_t;

/// Lines up to this length are sorted by counting smaller entries: n² comparisons, which are
/// vectorized if entries are numbers.
template <class Entry>
constexpr SortIndex counted_length = sizeof(Entry) == 8 ? 64 : 16;
/// From this length on, digits have 11 bits instead of 8: fewer passes, but more counters.
constexpr SortIndex long_length = 8192;

/// Each entry goes to the position that is the number of smaller entries.
template <class Entry>
void count_smaller(const Entry* entries, Entry* sorted, SortIndex n) {
  for (SortIndex i = 0; i < n; ++i) {
    const Entry entry = entries[i];
    std::uint64_t smaller = 0;
    for (SortIndex j = 0; j < n; ++j) smaller += entries[j] < entry ? 1 : 0;
    sorted[smaller] = entry;
  }
}

/// A least significant digit first radix sort. Passes in which all entries have one digit are
/// skipped. Returns where the sorted entries are.
template <int bits, class Entry>
Entry* radix_sort(Entry* from, Entry* to, SortIndex n) {
  constexpr int key_bits = sizeof(key_of(*from)) * 8;
  constexpr int passes = (key_bits + bits - 1) / bits;
  constexpr std::uint32_t digits = 1u << bits;
  const auto digit_of = [](const Entry& entry, int pass) {
    return static_cast<std::uint32_t>(key_of(entry) >> (pass * bits)) & (digits - 1);
  };
  std::uint32_t counts[passes][digits] = {};
  for (SortIndex i = 0; i < n; ++i) {
    for (int pass = 0; pass < passes; ++pass) ++counts[pass][digit_of(from[i], pass)];
  }
  for (int pass = 0; pass < passes; ++pass) {
    std::uint32_t* const next = counts[pass];
    if (next[digit_of(from[0], pass)] == n) continue;
    std::uint32_t total = 0;
    for (std::uint32_t digit = 0; digit < digits; ++digit) {
      total += std::exchange(next[digit], total);
    }
    for (SortIndex i = 0; i < n; ++i) to[next[digit_of(from[i], pass)]++] = from[i];
    std::swap(from, to);
  }
  return from;
}

template <class Entry>
void sort(Entry* entries, Entry* scratch, SortIndex n) {
  if (n < 2) return;
  const Entry* sorted = scratch;
  if (n <= counted_length<Entry>) {
    count_smaller(entries, scratch, n);
  } else if (n < long_length) {
    sorted = radix_sort<8>(entries, scratch, n);
  } else {
    sorted = radix_sort<11>(entries, scratch, n);
  }
  if (sorted != entries) std::copy_n(sorted, n, entries);
}

}  // namespace

void add_sort(Kernels& kernels) {
  kernels.sort_narrow = sort<NarrowEntry>;
  kernels.sort_wide = sort<WideEntry>;
}

}  // namespace palimpsest::PALIMPSEST_LEVEL
