#pragma once

#include "autodiff/heap_block.h"
#include "autodiff/tensor.h"

namespace palimpsest {

/// Storage of one value. Large blocks have pages of their own, because the C library does not
/// return memory to the system that is freed below the end of its heap. Freed pages are cached for
/// the next block: the system takes longer to provide fresh, zeroed pages than many kernels take to
/// fill them. Like the heap, the cache belongs to the process.
///
/// Blocks and cached pages together never exceed the highest total of blocks so far, and an `Arena`
/// takes the place of cached pages. So if all blocks fit a budget, the process stays within it.
struct StorageBlock {
  std::byte* data;
  void* heap;   ///< null: pages
  Bytes bytes;  ///< as requested
};

/// Blocks of at least this size have pages of their own. Rounding up to pages of 4 KiB adds at most
/// 1.6 % to them.
inline constexpr Bytes least_mapped = 256_KiB;
/// True for those blocks. Always false under AddressSanitizer, which watches the heap only.
bool is_mapped(Bytes bytes);

/// Uninitialised storage. Throws `EnvironmentError` when there is no memory for it. Thread-safe, as
/// is everything here.
StorageBlock take_block(Bytes bytes);
void give_block(const StorageBlock& block) noexcept;
/// A block as a buffer, which gives it back when its last holder releases it.
Buffer block_buffer(Bytes bytes);

/// At most so many bytes of pages are cached.
inline constexpr Bytes most_spare = 256_MiB;
/// Bytes of the pages that are cached now.
Bytes spare_bytes();
/// Returns so many bytes of cached pages to the system, or all of them when there are fewer.
void release_spare(Bytes bytes) noexcept;

}  // namespace palimpsest
