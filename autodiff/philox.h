#pragma once

#include <cstdint>

namespace palimpsest {

/// One stream of random numbers: Philox 4×32 (Salmon et al., 2011) keyed by a seed, a tape's
/// generation and a node. Number i depends on the key and i only, so any part can be made again, by
/// any thread, with the same bits.
struct RandomStream {
  std::uint64_t seed = 0;
  std::uint32_t generation = 0;
  std::uint32_t node = 0;
};

/// Fills with numbers `first` … `first` + n − 1 of the stream, uniform in [0, 1): 24 random bits
/// for f32, 53 for f64. `first` is a multiple of 4.
void fill_uniform(const RandomStream& stream, float* out, std::int64_t n, std::int64_t first = 0);
void fill_uniform(const RandomStream& stream, double* out, std::int64_t n, std::int64_t first = 0);

/// Fills with standard normal numbers (Box and Muller, 1958).
void fill_normal(const RandomStream& stream, float* out, std::int64_t n);
void fill_normal(const RandomStream& stream, double* out, std::int64_t n);

}  // namespace palimpsest
