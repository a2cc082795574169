#include "checkpoint/meter.h"

#include <sys/mman.h>

#include <cstring>
#include <thread>

#include "checkpoint/arena.h"
#include "tests/catch.h"

namespace meter_test {

using namespace palimpsest;

namespace {

constexpr Bytes page = 4096;

/// The number of pages in [data, data + bytes) that are mapped.
int mapped_pages(std::byte* data, Bytes bytes) {
  int count = 0;
  unsigned char residency = 0;
  for (Bytes at = 0; at < bytes; at += page) {
    count += mincore(data + at, page, &residency) == 0 ? 1 : 0;
  }
  return count;
}

}  // namespace

TEST_CASE("meter: counts what is held and the most that was") {
  const Meter meter;
  Buffer a = meter.allocate(100);
  const Buffer b = meter.allocate(28);
  CHECK(meter.live() == 128);
  const Buffer alias(a, a.get() + 64);
  a.reset();
  CHECK(meter.live() == 128);
  CHECK(meter.reserved() == 128);
  a = meter.allocate(0);
  CHECK(a != nullptr);
  CHECK(meter.peak() == 128);
}

TEST_CASE("meter: the last holder's release counts, and peaks start anew") {
  const Meter meter;
  meter.allocate(1000);
  CHECK(meter.live() == 0);
  CHECK(meter.peak() == 1000);
  meter.reset_peaks();
  CHECK(meter.peak() == 0);
  CHECK(meter.peak_reserved() == 0);
}

TEST_CASE("meter: buffers outlive it") {
  Buffer buffer;
  {
    const Meter meter;
    buffer = meter.allocate(8);
  }
  buffer.reset();
  CHECK(buffer == nullptr);
}

TEST_CASE("meter: threads count together") {
  const Meter meter;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([meter] {
      for (int k = 0; k < 1000; ++k) meter.allocate(64);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(meter.live() == 0);
  CHECK(meter.peak() >= 64);
  CHECK(meter.peak() <= 4 * 64);
}

TEST_CASE("arena: a weak pointer to a cut does not keep the region") {
  Arena arena(Meter(), 100'000);
  Buffer cut = arena.cut(0, 100);
  const std::weak_ptr<std::byte> watcher = cut;
  CHECK(arena.in_use());
  cut.reset();
  CHECK_FALSE(arena.in_use());
}

TEST_CASE("arena: cuts are live bytes, the region is reserved bytes") {
  const Meter meter;
  Arena arena(meter, 10 * page);
  CHECK(meter.live() == 0);
  CHECK(meter.reserved() == 0);
  CHECK_FALSE(arena.in_use());
  Buffer a = arena.cut(0, 100);
  const Buffer b = arena.cut(64 * 3, 1000);
  CHECK(b.get() - a.get() == 64 * 3);
  CHECK(meter.live() == 1100);
  CHECK(meter.reserved() == 64 * 3 + 1000);
  CHECK(arena.in_use());
  a.reset();
  CHECK(meter.live() == 1000);
  CHECK_THROWS_AS(arena.cut(9 * page, page + 1), InternalError);
}

TEST_CASE("arena: is unmapped with its last buffer") {
  const Meter meter;
  Buffer buffer;
  {
    const Arena arena(meter, 3 * page - 1);
    buffer = arena.cut(0, 8);
  }
  buffer.get()[0] = std::byte{1};
  CHECK(meter.reserved() == 8);
  buffer.reset();
  CHECK(meter.reserved() == 0);
  CHECK(meter.live() == 0);
}

TEST_CASE("arena: given up, only the pages of what is kept stay mapped") {
  const Meter meter;
  Arena arena(meter, 10 * page);
  Buffer low = arena.cut(page + 64, 100);
  Buffer high = arena.cut(5 * page - 64, 128);
  std::byte* const data = low.get() - page - 64;
  std::memset(data, 1, 10 * page);
  const std::vector<Arena::Range> kept{{5 * page - 64, 128}, {page + 64, 100}, {page + 64, 0}};
  arena.release_except(kept);
  CHECK(arena.size() == 0);
  CHECK(meter.reserved() == 2 * page + 64);  // pages 1, 4 and the part of page 5
  CHECK(mapped_pages(data, 10 * page) == 3);
  CHECK(low.get()[99] == std::byte{1});
  CHECK(high.get()[127] == std::byte{1});
  CHECK(meter.live() == 228);
  low.reset();
  high.reset();
  CHECK(mapped_pages(data, 10 * page) == 0);
  CHECK(meter.reserved() == 0);
}

TEST_CASE("arena: a region the system refuses is the environment's error") {
  CHECK_THROWS_AS(Arena(Meter(), INT64_MAX / 2), EnvironmentError);
}

}  // namespace meter_test
