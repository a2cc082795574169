#include "tests/memory/outside.h"

#include <malloc.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
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
std::atomic<std::int64_t> taken = 0;
std::atomic<std::int64_t> most = 0;

void take(std::int64_t bytes) noexcept {
  const std::int64_t now = taken.fetch_add(bytes) + bytes;
  std::int64_t seen = most.load();
  while (seen < now && !most.compare_exchange_weak(seen, now)) {
  }
}

void map(std::int64_t bytes) noexcept {
  mapped += bytes;
  take(bytes);
}

/// Bytes of a block of the C library's heap, with its header.
std::int64_t size_of_block(void* block) noexcept {
  return static_cast<std::int64_t>(malloc_usable_size(block) + sizeof(std::size_t));
}

void* counted(void* block) noexcept {
  if (block != nullptr) take(size_of_block(block));
  return block;
}

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

std::int64_t bytes_taken() { return taken; }
std::int64_t most_taken() { return most; }
void restart_most_taken() { most = taken.load(); }

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

// The C library's own functions, which these replace and count.
extern "C" {
void* __libc_malloc(std::size_t size) noexcept;
void* __libc_calloc(std::size_t count, std::size_t size) noexcept;
void* __libc_realloc(void* block, std::size_t size) noexcept;
void* __libc_memalign(std::size_t alignment, std::size_t size) noexcept;
void __libc_free(void* block) noexcept;

void* malloc(std::size_t size) noexcept { return palimpsest::counted(__libc_malloc(size)); }
void* calloc(std::size_t count, std::size_t size) noexcept {
  return palimpsest::counted(__libc_calloc(count, size));
}
void* realloc(void* block, std::size_t size) noexcept {
  const std::int64_t before = block != nullptr ? palimpsest::size_of_block(block) : 0;
  void* const moved = __libc_realloc(block, size);
  if (moved != nullptr || size == 0) palimpsest::take(-before);
  return palimpsest::counted(moved);
}
void free(void* block) noexcept {
  if (block != nullptr) palimpsest::take(-palimpsest::size_of_block(block));
  __libc_free(block);
}
void* memalign(std::size_t alignment, std::size_t size) noexcept {
  return palimpsest::counted(__libc_memalign(alignment, size));
}
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  return memalign(alignment, size);
}
int posix_memalign(void** block, std::size_t alignment, std::size_t size) noexcept {
  *block = memalign(alignment, size);
  return *block != nullptr ? 0 : ENOMEM;
}
}

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
  if (result != -1) palimpsest::map(static_cast<std::int64_t>(size));
  return reinterpret_cast<void*>(result);
}
void* counted_mmap64(void* address, std::size_t size, int protection, int flags, int file,
                     std::int64_t offset) noexcept {
  return counted_mmap(address, size, protection, flags, file, offset);
}
int counted_munmap(void* address, std::size_t size) noexcept {
  const long result = syscall(SYS_munmap, address, size);
  if (result == 0) palimpsest::map(-static_cast<std::int64_t>(size));
  return static_cast<int>(result);
}
void* counted_mremap(void* address, std::size_t before, std::size_t after, int flags,
                     void* to) noexcept {
  const long result = syscall(SYS_mremap, address, before, after, flags, to);
  if (result != -1) palimpsest::map(static_cast<std::int64_t>(after - before));
  return reinterpret_cast<void*>(result);
}
}
