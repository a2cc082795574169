#include "checkpoint/stores/hash.h"

#include <set>
#include <string_view>
#include <vector>

#include "tests/catch.h"

namespace hash_test {

using namespace palimpsest;

namespace {

std::span<const std::byte> bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

TEST_CASE("hash: the number that xxHash publishes for nothing") {
  CHECK(hash_bytes({}) == 0x2d06800538d394c2u);
  CHECK(hash_bytes_128({}) == Hash128{0x6001c324468d497fu, 0x99aa06d3014798d8u});
}

TEST_CASE("hash: every bit, the length, the seed and the order of spans matter") {
  for (const std::size_t size : {1, 8, 17, 200, 300, 5000}) {
    std::vector<std::byte> content(size, std::byte{0x5a});
    std::set<std::uint64_t> hashes{hash_bytes(content), hash_bytes(content, 1)};
    for (std::size_t bit = 0; bit < 8 * size; ++bit) {
      const auto flip = std::byte{1} << (bit % 8);
      content[bit / 8] ^= flip;
      hashes.insert(hash_bytes(content));
      content[bit / 8] ^= flip;
    }
    content.push_back(std::byte{0});
    hashes.insert(hash_bytes(content));
    CHECK(hashes.size() == 8 * size + 3);
    content.pop_back();
    const Hash128 hash = hash_bytes_128(content);
    content.back() ^= std::byte{1};
    CHECK(hash_bytes_128(content).low != hash.low);
    CHECK(hash_bytes_128(content).high != hash.high);
  }
  CHECK(hash_bytes(bytes("a"), hash_bytes(bytes("b"))) !=
        hash_bytes(bytes("b"), hash_bytes(bytes("a"))));
}

}  // namespace hash_test
