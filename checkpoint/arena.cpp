#include "checkpoint/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "checkpoint/block.h"
#include "checkpoint/pages.h"

namespace palimpsest {

namespace {

struct FreeHeapBytes {
  void operator()(std::byte* bytes) const {
    ::operator delete(bytes, std::align_val_t(buffer_alignment));
  }
};
using HeapBytes = std::unique_ptr<std::byte, FreeHeapBytes>;

/// Zeros, as in fresh pages; null when there is no memory.
HeapBytes allocate_small(Bytes size) {
  const auto bytes = static_cast<std::size_t>(size);
  void* const made = ::operator new(bytes, std::align_val_t(buffer_alignment), std::nothrow);
  if (made != nullptr) std::memset(made, 0, bytes);
  return HeapBytes(static_cast<std::byte*>(made));
}

}  // namespace

struct Arena::Region {
  Region(Meter owner, Bytes size) : meter(std::move(owner)) {
    if (size <= page_size()) {
      heap = allocate_small(size);
      data = heap.get();
    } else {
      mapped = whole_pages(size);
      release_spare(mapped);
      void* const address = mmap(nullptr, static_cast<std::size_t>(mapped), PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (address != MAP_FAILED) data = static_cast<std::byte*>(address);
      if (data != nullptr) kept = {{0, mapped}};
    }
    if (data == nullptr) {
      throw EnvironmentError("[arena] cannot allocate " + format_bytes(size) + " (" +
                             std::to_string(size) + " bytes); give a smaller budget");
    }
  }
  explicit Region(std::span<std::byte> memory) : data(memory.data()) {}
  ~Region() {
    for (const Range& pages : kept) {
      unmap_pages(data + pages.offset, pages.bytes);
    }
    meter.counts_->reserved.add(released - highest);
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  /// Returns the pages to the system that no range lies in. The ranges are sorted by offset.
  void release_except(std::span<const Range> ranges) {
    std::vector<Range> pages;
    pages.reserve(ranges.size());
    Bytes free = 0;  // start of the pages that no range so far lies in
    for (const Range& range : ranges) {
      if (range.bytes <= 0) continue;
      const Bytes begin = std::max(free, range.offset / page_size() * page_size());
      const Bytes end = std::max(free, whole_pages(range.offset + range.bytes));
      release(free, begin);
      if (begin < end) pages.push_back({begin, end - begin});
      free = end;
    }
    release(free, mapped);
    kept = std::move(pages);
  }
  /// Returns the pages of [begin, end), both multiples of the page size, to the system.
  void release(Bytes begin, Bytes end) {
    if (begin >= end) return;
    unmap_pages(data + begin, end - begin);
    const Bytes bytes = std::max<Bytes>(std::min<Bytes>(end, highest) - begin, 0);
    released += bytes;
    meter.counts_->reserved.add(-bytes);
  }
  /// Counts the bytes below `end` as reserved.
  void reach(Bytes end) {
    Bytes seen = highest.load();
    while (seen < end) {
      if (!highest.compare_exchange_weak(seen, end)) continue;
      meter.counts_->reserved.add(end - seen);
      return;
    }
  }

  Meter meter;
  std::byte* data = nullptr;
  Bytes mapped = 0;                // 0 for the caller's memory, and for memory of the heap
  HeapBytes heap;                  // for at most a page, which the system would take longer to map
  std::atomic<Bytes> highest = 0;  // end of the highest buffer cut
  Bytes released = 0;              // bytes below it whose pages were given back
  std::vector<Range> kept;         // the mapped pages that were not given back
};

Arena::Arena(Meter meter, Bytes size)
    : region_(std::make_shared<Region>(std::move(meter), size)), size_(size) {}

Arena::Arena(std::span<std::byte> memory)
    : region_(std::make_shared<Region>(memory)), size_(std::ssize(memory)) {}

Buffer Arena::cut(Bytes offset, Bytes bytes) const {
  internal_check(offset >= 0 && bytes >= 0 && offset + bytes <= size_, "a cut outside the arena");
  std::byte* const data = region_->data + offset;
  region_->reach(offset + bytes);
  region_->meter.counts_->live.add(bytes);
  return Buffer(data, [region = region_, bytes](std::byte*) mutable {
    // Weak pointers to the buffer keep this function, but must not keep the region.
    const std::shared_ptr<Region> released = std::move(region);
    released->meter.counts_->live.add(-bytes);
  });
}

std::byte* Arena::at(Bytes offset) const { return region_->data + offset; }

void Arena::note(Bytes most_live, Bytes end) const {
  region_->reach(end);
  region_->meter.counts_->live.note(most_live);
}

bool Arena::in_use() const {
  const bool shared = region_.use_count() > 1;
  std::atomic_thread_fence(std::memory_order_acquire);  // see what the last holder did
  return shared;
}

void Arena::release_except(std::span<const Range> ranges) {
  std::vector<Range> kept(ranges.begin(), ranges.end());
  std::sort(kept.begin(), kept.end(),
            [](const Range& a, const Range& b) { return a.offset < b.offset; });
  if (region_->mapped > 0) region_->release_except(kept);
  region_.reset();
  size_ = 0;
}

}  // namespace palimpsest
