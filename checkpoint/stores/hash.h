#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace palimpsest {

/// 64 bits that tell `bytes` from others: xxHash's XXH3, as fast as memory is read. The same on
/// every machine; no defence against somebody who wants two contents to have the same. Several
/// spans are hashed in turn, each with what the one before gave for a seed.
std::uint64_t hash_bytes(std::span<const std::byte> bytes, std::uint64_t seed = 0);

/// 128 bits that tell contents from others which must never be taken for them: of a million
/// million contents the chance that any two share their bits is less than 10⁻¹⁴.
struct Hash128 {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  bool operator==(const Hash128&) const = default;
};
/// The same with twice the bits, as fast.
Hash128 hash_bytes_128(std::span<const std::byte> bytes);

}  // namespace palimpsest
