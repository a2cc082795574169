#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace palimpsest {

/// 64 bits that tell `bytes` from others: xxHash's XXH3, as fast as memory is read. The same on
/// every machine; no defence against somebody who wants two contents to have the same. Several
/// spans are hashed in turn, each with what the one before gave for a seed.
std::uint64_t hash_bytes(std::span<const std::byte> bytes, std::uint64_t seed = 0);

}  // namespace palimpsest
