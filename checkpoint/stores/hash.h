#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "autodiff/export.h"

namespace palimpsest PALIMPSEST_EXPORT {  // for palimpsest-mpi

/// A 64-bit hash of `bytes`: xxHash's XXH3, as fast as memory is read. It is the same on every
/// machine, and not secure against deliberate collisions. To hash several spans, pass each hash as
/// the seed of the next.
std::uint64_t hash_bytes(std::span<const std::byte> bytes, std::uint64_t seed = 0);

/// A 128-bit hash, for contents that must never be confused. Among 10¹² contents, the chance that
/// any two share a hash is less than 10⁻¹⁴.
struct Hash128 {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  bool operator==(const Hash128&) const = default;
};
/// The 128-bit hash of `bytes`, as fast as the 64-bit one.
Hash128 hash_bytes_128(std::span<const std::byte> bytes);

}  // namespace palimpsest
