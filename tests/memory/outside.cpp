#include "tests/memory/outside.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace palimpsest {
namespace {

std::atomic<std::size_t> watched = 0;
std::atomic<std::size_t> least_noted = 1;
std::atomic<std::size_t> most_noted = 0;
std::atomic<std::size_t> last = 0;
std::atomic<std::int64_t> blocks = 0;
std::atomic<std::int64_t> mapped = 0;

/// Stored before each block; as large as the guaranteed alignment.
struct alignas(std::max_align_t) Header {
  bool is_watched;
};

void* allocate(std::size_t size) noexcept {
  void* const block = std::malloc(std::max<std::size_t>(size, 1) + sizeof(Header));
  if (block == nullptr) return nullptr;
  if (size >= least_noted && size <= most_noted) last = size;
  auto* const header = new (block) Header{size == watched};
  if (header->is_watched) ++blocks;
  return header + 1;
}

void give_back(void* data) noexcept {
  if (data == nullptr) return;
  Header* const header = static_cast<Header*>(data) - 1;
  if (header->is_watched) --blocks;
  std::free(header);
}

}  // namespace

void watch_size(std::size_t size) { watched = size; }
void bound_requests(std::size_t least, std::size_t most) {
  least_noted = least;
  most_noted = most;
}
std::size_t last_request() { return last; }
std::int64_t watched_blocks() { return blocks; }
std::int64_t mapped_bytes() { return mapped; }

}  // namespace palimpsest

// The other overloads call these ones; the aligned ones are not replaced.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return palimpsest::allocate(size);
}
void* operator new(std::size_t size) {
  void* const data = operator new(size, std::nothrow);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}
void operator delete(void* data) noexcept { palimpsest::give_back(data); }
void operator delete(void* data, std::size_t) noexcept { palimpsest::give_back(data); }

// Replaced by their symbol names, which do not clash with declarations in headers.
extern "C" {
void* counted_mmap(void* address, std::size_t size, int protection, int flags, int file,
                   std::int64_t offset) noexcept asm("mmap");
void* counted_mmap64(void* address, std::size_t size, int protection, int flags, int file,
                     std::int64_t offset) noexcept asm("mmap64");
int counted_munmap(void* address, std::size_t size) noexcept asm("munmap");
void* counted_mremap(void* address, std::size_t before, std::size_t after, int flags,
                     void* to) noexcept asm("mremap");

void* counted_mmap(void* address, std::size_t size, int protection, int flags, int file,
                   std::int64_t offset) noexcept {
  const long result = syscall(SYS_mmap, address, size, protection, flags, file, offset);
  if (result != -1) palimpsest::mapped += static_cast<std::int64_t>(size);
  return reinterpret_cast<void*>(result);
}
void* counted_mmap64(void* address, std::size_t size, int protection, int flags, int file,
                     std::int64_t offset) noexcept {
  return counted_mmap(address, size, protection, flags, file, offset);
}
int counted_munmap(void* address, std::size_t size) noexcept {
  const long result = syscall(SYS_munmap, address, size);
  if (result == 0) palimpsest::mapped -= static_cast<std::int64_t>(size);
  return static_cast<int>(result);
}
void* counted_mremap(void* address, std::size_t before, std::size_t after, int flags,
                     void* to) noexcept {
  const long result = syscall(SYS_mremap, address, before, after, flags, to);
  if (result != -1) palimpsest::mapped += static_cast<std::int64_t>(after - before);
  return reinterpret_cast<void*>(result);
}
}
