// Replaces `new` of the test program, to record the requested sizes. Sanitizers have their own
// `new`, and nothing is recorded there.
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "tests/mutations/mutations.h"

namespace {

std::atomic<std::size_t> largest = 0;

[[maybe_unused]] void* take(std::size_t bytes, std::size_t alignment) {
  std::size_t known = largest.load();
  while (bytes > known && !largest.compare_exchange_weak(known, bytes)) {
  }
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* const memory = alignment <= alignof(std::max_align_t)
                           ? std::malloc(bytes == 0 ? 1 : bytes)
                           : std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

namespace palimpsest {

std::size_t largest_allocation() { return largest.load(); }
void forget_allocations() { largest = 0; }

}  // namespace palimpsest

#ifndef HAS_SANITIZER
void* operator new(std::size_t bytes) { return take(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return take(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
#endif
