#include "checkpoint/pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace palimpsest {

Bytes page_size() {
  static const Bytes size = sysconf(_SC_PAGESIZE);
  return size;
}

Bytes whole_pages(Bytes bytes) {
  const Bytes page = page_size();
  return std::max((bytes + page - 1) / page * page, page);
}

std::byte* map_pages(Bytes bytes) noexcept {
  void* const pages = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pages == MAP_FAILED ? nullptr : static_cast<std::byte*>(pages);
}

void unmap_pages(std::byte* pages, Bytes bytes) noexcept {
  const auto size = static_cast<std::size_t>(bytes);
  // To split a mapping, the system may need memory that it does not have.
  if (munmap(pages, size) != 0) madvise(pages, size, MADV_DONTNEED);
}

std::byte* grow_pages(std::byte* pages, Bytes bytes, Bytes larger) noexcept {
  void* const grown = mremap(pages, static_cast<std::size_t>(bytes),
                             static_cast<std::size_t>(larger), MREMAP_MAYMOVE);
  return grown == MAP_FAILED ? nullptr : static_cast<std::byte*>(grown);
}

}  // namespace palimpsest
