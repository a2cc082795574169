#include "checkpoint/block.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>

#include "autodiff/address_sanitizer.h"
#include "checkpoint/spare_pages.h"

namespace palimpsest {
namespace {

/// The process's blocks.
struct Blocks {
  std::mutex mutex;
  SparePages spare;
  std::atomic<Bytes> spare_bytes = 0;
  std::atomic<Bytes> heap = 0;  // bytes of blocks on it
  // The most since fresh pages were last taken. Spare pages have made way for so many.
  std::atomic<Bytes> highest = 0;
};

/// Never destroyed: the last blocks may be those of static objects.
Blocks& all_blocks() noexcept {
  alignas(Blocks) static std::byte memory[sizeof(Blocks)];
  static Blocks& blocks = *new (memory) Blocks;
  return blocks;
}

/// Spare pages make way for what is taken from the heap, as they do for fresh pages.
void note_heap(Bytes bytes) noexcept {
  Blocks& blocks = all_blocks();
  const Bytes heap = blocks.heap.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  constexpr Bytes little = 32_KiB;
  if (heap <= blocks.highest.load(std::memory_order_relaxed) + little) return;
  const std::lock_guard lock(blocks.mutex);
  blocks.spare.trim(blocks.spare.bytes() - (heap - blocks.highest));
  blocks.spare_bytes = blocks.spare.bytes();
  blocks.highest = std::max(blocks.highest.load(), heap);
}

}  // namespace

bool is_mapped(Bytes bytes) { return bytes >= least_mapped && !has_address_sanitizer(); }

StorageBlock take_block(Bytes bytes) {
  if (!is_mapped(bytes)) {
    const HeapBlock block = allocate_heap(bytes);
    note_heap(bytes);
    return {block.data, block.block, bytes};
  }
  Blocks& blocks = all_blocks();
  const std::lock_guard lock(blocks.mutex);
  const Bytes spare = blocks.spare.bytes();
  std::byte* const pages = blocks.spare.take(whole_pages(bytes));
  const bool has_fresh_pages = spare - blocks.spare.bytes() < whole_pages(bytes);
  if (has_fresh_pages) blocks.highest = blocks.heap.load();
  blocks.spare_bytes = blocks.spare.bytes();
  if (pages == nullptr) throw_no_memory(bytes);
  return {pages, nullptr, bytes};
}

void give_block(const StorageBlock& block) noexcept {
  if (block.heap != nullptr) {
    free_heap({block.data, block.heap});
    return note_heap(-block.bytes);
  }
  Blocks& blocks = all_blocks();
  const std::lock_guard lock(blocks.mutex);
  blocks.spare.give(block.data, whole_pages(block.bytes));
  blocks.spare.trim(most_spare);
  blocks.spare_bytes = blocks.spare.bytes();
}

Buffer block_buffer(Bytes bytes) {
  const StorageBlock block = take_block(bytes);
  return Buffer(block.data, [block](std::byte*) { give_block(block); });
}

Bytes spare_bytes() { return all_blocks().spare_bytes; }

void release_spare(Bytes bytes) noexcept {
  Blocks& blocks = all_blocks();
  if (blocks.spare_bytes == 0) return;
  const std::lock_guard lock(blocks.mutex);
  if (blocks.spare.bytes() < bytes) blocks.highest = blocks.heap.load();
  blocks.spare.trim(blocks.spare.bytes() - bytes);
  blocks.spare_bytes = blocks.spare.bytes();
}

}  // namespace palimpsest
