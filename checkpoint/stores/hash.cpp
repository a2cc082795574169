#include "checkpoint/stores/hash.h"

// The header then contains the whole library, so nothing has to be linked.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace palimpsest {

std::uint64_t hash_bytes(std::span<const std::byte> bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

Hash128 hash_bytes_128(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

}  // namespace palimpsest
