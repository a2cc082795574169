#include "tests/failing_memory.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace palimpsest {
namespace {

std::atomic<bool> is_armed = false;
std::atomic<std::int64_t> left = 0;
std::atomic<std::int64_t> held = 0;

void* allocate(std::size_t size, std::size_t alignment) noexcept {
  if (is_to_fail()) return nullptr;
  const std::size_t rounded = (std::max<std::size_t>(size, 1) + alignment - 1) / alignment;
  void* const data = std::aligned_alloc(alignment, rounded * alignment);
  if (data != nullptr) note_allocations(1);
  return data;
}

void give_back(void* data) noexcept {
  if (data != nullptr) note_allocations(-1);
  std::free(data);
}

}  // namespace

bool is_to_fail() { return is_armed.load(std::memory_order_relaxed) && left.fetch_sub(1) == 0; }

void note_allocations(std::int64_t count) { held.fetch_add(count, std::memory_order_relaxed); }

void fail_allocation(std::int64_t before) {
  left = before;
  is_armed = true;
}

bool end_failing() {
  is_armed = false;
  return left < 0;
}

std::int64_t allocations_held() { return held; }

}  // namespace palimpsest

// The other overloads call these ones, except under sanitizers: there, these are all that are
// called.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return palimpsest::allocate(size, alignof(std::max_align_t));
}
void* operator new(std::size_t size) {
  void* const data = operator new(size, std::nothrow);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return palimpsest::allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* data) noexcept { palimpsest::give_back(data); }
void operator delete(void* data, std::size_t) noexcept { palimpsest::give_back(data); }
void operator delete(void* data, std::align_val_t) noexcept { palimpsest::give_back(data); }
