#include "checkpoint/stores/compression.h"

#include <algorithm>
#include <random>
#include <vector>

#include "tests/catch.h"

namespace compression_test {

using namespace palimpsest;

namespace {

constexpr Bytes block = 64_KiB;

void fill(std::span<std::byte> bytes, unsigned values) {
  std::mt19937 random(1);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() % values);
}

}  // namespace

TEST_CASE("compression: blocks of any size come back") {
  Compression compression(block);
  for (const std::size_t bytes : {100, 1000, 65535, 65536}) {
    CAPTURE(bytes);
    fill(compression.plain(), 3);
    const std::vector<std::byte> before(compression.plain().begin(),
                                        compression.plain().begin() + static_cast<long>(bytes));
    const std::size_t packed = compression.compress(bytes);
    CHECK(packed > 0);
    CHECK(packed < bytes);
    fill(compression.plain(), 256);
    CHECK(compression.decompress(packed, bytes));
    CHECK(std::equal(before.begin(), before.end(), compression.plain().begin()));
  }
}

TEST_CASE("compression: what does not shrink is left as it is") {
  Compression compression(block);
  fill(compression.plain(), 256);
  CHECK(compression.compress(65536) == 0);
  CHECK(compression.compress(1) == 0);
}

TEST_CASE("compression: damaged bytes are refused or give other bytes, and nothing worse") {
  Compression compression(block);
  fill(compression.plain(), 3);
  const std::size_t packed = compression.compress(65536);
  REQUIRE(packed > 0);
  CHECK_FALSE(compression.decompress(packed - 1, 65536));
  CHECK_FALSE(compression.decompress(packed, 65535));
  for (std::size_t i = 0; i < packed; i += 97) {
    compression.packed()[i] ^= std::byte{0x10};
    compression.decompress(packed, 65536);
    compression.packed()[i] ^= std::byte{0x10};
  }
  CHECK(compression.decompress(packed, 65536));
}

TEST_CASE("compression: the memory it says it takes does not grow") {
  Compression compression(block);
  fill(compression.plain(), 256);
  compression.compress(65536);
  fill(compression.plain(), 3);
  compression.decompress(compression.compress(65536), 65536);
  const Bytes bytes = compression.memory_bytes();
  CHECK(bytes > 2 * block);
  for (const std::size_t size : {65536, 100, 30000}) {
    compression.decompress(compression.compress(size), size);
  }
  CHECK(compression.memory_bytes() == bytes);
}

}  // namespace compression_test
