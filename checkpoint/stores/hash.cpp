#include "checkpoint/stores/hash.h"

// The whole of it is in the header then: no library to link.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace palimpsest {

std::uint64_t hash_bytes(std::span<const std::byte> bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace palimpsest
