#include "tests/failing_memory.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<bool> is_armed = false;
std::atomic<std::int64_t> left = 0;

void* allocate(std::size_t size, std::size_t alignment) noexcept {
  if (is_armed.load(std::memory_order_relaxed) && left.fetch_sub(1) == 0) return nullptr;
  const std::size_t rounded = (std::max<std::size_t>(size, 1) + alignment - 1) / alignment;
  return std::aligned_alloc(alignment, rounded * alignment);
}

}  // namespace

// The other functions of these names call these, but those of sanitizers: these have all that are
// called.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, alignof(std::max_align_t));
}
void* operator new(std::size_t size) {
  void* const data = operator new(size, std::nothrow);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* data) noexcept { std::free(data); }
void operator delete(void* data, std::size_t) noexcept { std::free(data); }
void operator delete(void* data, std::align_val_t) noexcept { std::free(data); }

namespace palimpsest {

void fail_allocation(std::int64_t before) {
  left = before;
  is_armed = true;
}

bool end_failing() {
  is_armed = false;
  return left < 0;
}

}  // namespace palimpsest
