#pragma once

#include <cstddef>

#include "autodiff/bytes.h"

namespace palimpsest {

/// A block of heap memory. Its data is aligned to `buffer_alignment`.
struct HeapBlock {
  std::byte* data;
  void* block;  ///< address to free, as returned by the heap
};

/// Throws `EnvironmentError` when out of memory.
HeapBlock allocate_heap(Bytes bytes);
void free_heap(const HeapBlock& block) noexcept;

/// Throws the `EnvironmentError` for a failed allocation of `bytes`.
[[noreturn]] void throw_no_memory(Bytes bytes);

}  // namespace palimpsest
