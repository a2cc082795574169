#pragma once

#include "autodiff/heap_block.h"
#include "autodiff/tensor.h"

namespace palimpsest {

/// Storage of one value. Large blocks lie in pages of their own: the C library keeps what is freed
/// below the end of its heap, whoever needs memory. Freed pages are kept for the next block, since
/// the system takes longer to give fresh ones, all zero, than many a kernel to fill them. As the
/// heap, they are the process's.
///
/// Blocks and kept pages together never are more than blocks were at once, and an `Arena` takes the
/// place of kept pages. So where all blocks fit a budget, the process keeps to it.
struct StorageBlock {
  std::byte* data;
  void* heap;   ///< null: pages
  Bytes bytes;  ///< that were asked for
};

/// Blocks from this size on have pages of their own. Rounding up to pages of 4 KiB adds at most
/// 1.6 % to them.
inline constexpr Bytes least_mapped = 256_KiB;
/// True for those. AddressSanitizer watches the heap alone: in its processes, for none.
bool is_mapped(Bytes bytes);

/// Uninitialised storage. Throws `EnvironmentError` when there is no memory for it. From any
/// thread.
StorageBlock take_block(Bytes bytes);
void give_block(const StorageBlock& block) noexcept;
/// The same with the one given back when nobody holds it any more.
Buffer block_buffer(Bytes bytes);

/// No more pages are kept than for so many bytes.
inline constexpr Bytes most_spare = 256_MiB;
/// Bytes of those that are kept now.
Bytes spare_bytes();
/// Gives so many back to the system, or all that there are.
void release_spare(Bytes bytes) noexcept;

}  // namespace palimpsest
