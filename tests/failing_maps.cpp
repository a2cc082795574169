// Makes mappings fail as described in tests/failing_memory.h. The functions replace those of the C
// library by their symbol names, which do not clash with declarations in headers. Not for MPI,
// which also replaces the functions of the C library.

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "tests/failing_memory.h"

extern "C" {
void* failing_mmap(void* address, std::size_t size, int protection, int flags, int file,
                   std::int64_t offset) noexcept asm("mmap");
void* failing_mmap64(void* address, std::size_t size, int protection, int flags, int file,
                     std::int64_t offset) noexcept asm("mmap64");
int counted_munmap(void* address, std::size_t size) noexcept asm("munmap");
void* failing_mremap(void* address, std::size_t before, std::size_t after, int flags,
                     void* to) noexcept asm("mremap");

void* failing_mmap(void* address, std::size_t size, int protection, int flags, int file,
                   std::int64_t offset) noexcept {
  if (palimpsest::is_to_fail()) {
    errno = ENOMEM;
    return reinterpret_cast<void*>(-1);
  }
  const long result = syscall(SYS_mmap, address, size, protection, flags, file, offset);
  if (result != -1) palimpsest::note_allocations(static_cast<std::int64_t>(size));
  return reinterpret_cast<void*>(result);
}
void* failing_mmap64(void* address, std::size_t size, int protection, int flags, int file,
                     std::int64_t offset) noexcept {
  return failing_mmap(address, size, protection, flags, file, offset);
}
int counted_munmap(void* address, std::size_t size) noexcept {
  const long result = syscall(SYS_munmap, address, size);
  if (result == 0) palimpsest::note_allocations(-static_cast<std::int64_t>(size));
  return static_cast<int>(result);
}
void* failing_mremap(void* address, std::size_t before, std::size_t after, int flags,
                     void* to) noexcept {
  if (palimpsest::is_to_fail()) {
    errno = ENOMEM;
    return reinterpret_cast<void*>(-1);
  }
  const long result = syscall(SYS_mremap, address, before, after, flags, to);
  if (result != -1) palimpsest::note_allocations(static_cast<std::int64_t>(after - before));
  return reinterpret_cast<void*>(result);
}
}
