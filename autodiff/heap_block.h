#pragma once

#include <cstddef>

#include "autodiff/bytes.h"

namespace palimpsest {

/// A block of the heap. Its data is aligned to `buffer_alignment`.
struct HeapBlock {
  std::byte* data;
  void* block;  ///< what the heap has given for it
};

/// Throws `EnvironmentError` when there is no memory for so many bytes.
HeapBlock allocate_heap(Bytes bytes);
void free_heap(const HeapBlock& block) noexcept;

/// Throws `EnvironmentError`: there is no memory for so many bytes.
[[noreturn]] void throw_no_memory(Bytes bytes);

}  // namespace palimpsest
