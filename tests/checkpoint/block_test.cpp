#include "checkpoint/block.h"

#include <algorithm>
#include <deque>
#include <random>
#include <thread>
#include <vector>

#include "checkpoint/arena.h"
#include "checkpoint/pages.h"
#include "tests/catch.h"

namespace block_test {

using namespace palimpsest;

namespace {

/// False under AddressSanitizer, where all blocks come from the heap.
bool are_pages_kept() {
  release_spare(spare_bytes());
  return is_mapped(1_MiB);
}

}  // namespace

TEST_CASE("blocks: freed pages serve the next block, in part or made larger") {
  if (!are_pages_kept()) return;
  Buffer a = block_buffer(1_MiB);
  std::byte* const first = a.get();
  first[0] = std::byte{7};
  a.reset();
  CHECK(spare_bytes() == 1_MiB);
  a = block_buffer(1_MiB - 100);
  CHECK(a.get() == first);
  CHECK(spare_bytes() == 0);
  a.reset();
  a = block_buffer(300'000);
  CHECK(spare_bytes() == 1_MiB - whole_pages(300'000));
  const Buffer large = block_buffer(2_MiB);  // from the rest and from new pages
  CHECK(spare_bytes() == 0);
  std::fill_n(large.get(), 2_MiB, std::byte{1});
  a.reset();
  CHECK(spare_bytes() == whole_pages(300'000));
  release_spare(page_size());
  CHECK(spare_bytes() == whole_pages(300'000) - page_size());
}

TEST_CASE("blocks: they and what is kept are never more than blocks were at once") {
  if (!are_pages_kept()) return;
  constexpr Bytes most = 16_MiB;
  struct Held {
    Buffer buffer;
    Bytes bytes;
    std::byte mark;
  };
  std::deque<Held> held;
  Bytes in_use = 0;
  const auto drop = [&](std::size_t index) {
    const Held& one = held[index];
    const std::byte* const data = one.buffer.get();
    CHECK(std::count(data, data + one.bytes, one.mark) == one.bytes);
    in_use -= whole_pages(one.bytes);
    held.erase(held.begin() + static_cast<std::ptrdiff_t>(index));
  };
  std::mt19937_64 random(1);
  for (int k = 0; k < 300; ++k) {
    const Bytes bytes = 256_KiB + static_cast<Bytes>(random() % 2'000'000);
    while (in_use + whole_pages(bytes) > most) drop(random() % held.size());
    held.push_back({block_buffer(bytes), bytes, static_cast<std::byte>(k)});
    std::fill_n(held.back().buffer.get(), bytes, held.back().mark);
    in_use += whole_pages(bytes);
    CHECK(in_use + spare_bytes() <= most);
  }
  while (!held.empty()) drop(0);
  CHECK(spare_bytes() <= most);
}

TEST_CASE("blocks: no more is kept than there is a limit for") {
  if (!are_pages_kept()) return;
  std::vector<Buffer> blocks;
  for (int k = 0; k < 5; ++k) blocks.push_back(block_buffer(most_spare / 4));
  blocks.clear();
  CHECK(spare_bytes() == most_spare);
  release_spare(most_spare);
  CHECK(spare_bytes() == 0);
}

TEST_CASE("blocks: what the heap grows by and arenas take the place of kept pages") {
  if (!are_pages_kept()) return;
  const Meter meter;
  meter.allocate(100_MiB);
  CHECK(spare_bytes() == 100_MiB);
  const Arena arena(meter, 40_MiB);
  CHECK(spare_bytes() == 60_MiB);
  std::vector<Buffer> small;
  for (int k = 0; k < 1000; ++k) small.push_back(meter.allocate(200'000));
  CHECK(spare_bytes() == 0);
  small.clear();
  // The heap counts anew from where it was when the system gave pages.
  meter.allocate(20_MiB);
  const auto fill = [&] {
    for (int k = 0; k < 50; ++k) small.push_back(meter.allocate(200'000));
  };
  fill();
  const Bytes left = spare_bytes();
  CHECK(left <= 20_MiB - 50 * 200'000);
  CHECK(left > 10_MiB);
  small.clear();
  fill();
  CHECK(spare_bytes() == left);
}

TEST_CASE("blocks: from and to any thread") {
  are_pages_kept();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      Buffer last;
      for (int k = 0; k < 100; ++k) {
        last = block_buffer(256_KiB * (1 + (k + t) % 4));
        last.get()[0] = std::byte{1};
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(spare_bytes() <= 4 * 2_MiB);
}

TEST_CASE("blocks: memory that the system has not is the environment's error") {
  if (!are_pages_kept()) return;  // AddressSanitizer would abort the process
  const Meter meter;
  CHECK_THROWS_AS(meter.allocate(INT64_MAX / 2), EnvironmentError);
  CHECK(meter.reserved() == 0);
}

}  // namespace block_test
