#pragma once

#include <cstdint>

#include "autodiff/dtype.h"
#include "autodiff/export.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// One stream of random numbers: Philox 4×32 (Salmon et al., 2011), keyed by a seed, a tape's
/// generation and a node. Number i depends on the key and i only. Any thread can therefore
/// regenerate any part with the same bits.
struct RandomStream {
  std::uint64_t seed = 0;
  std::uint32_t generation = 0;
  std::uint32_t node = 0;

  bool operator==(const RandomStream&) const = default;
};

/// Tells the runs of a program apart that is recorded once and run many times.
struct Round {
  constexpr Round(std::uint32_t run_number = 0, std::uint32_t part_number = 0)
      : run(run_number), part(part_number) {}

  std::uint32_t run;   ///< counts the runs of the program
  std::uint32_t part;  ///< of a computation that is divided, such as the shard of a replica

  bool operator==(const Round&) const = default;
};

/// The stream that replaces this one on a tape that was cleared `round.run` more times, and whose
/// seed is greater by `round.part`. Parts of a batch have such seeds.
constexpr RandomStream in_round(const RandomStream& stream, Round round) {
  return {stream.seed + round.part, stream.generation + round.run, stream.node};
}

/// 64 bits of the stream, for seeding other generators.
std::uint64_t seed_of(const RandomStream& stream);

/// Fills `out` with the numbers `first` … `first` + n − 1 of the stream, uniform in [0, 1). f32
/// uses 24 random bits, f64 53. `first` must be a multiple of 4.
void fill_uniform(const RandomStream& stream, float* out, std::int64_t n, std::int64_t first = 0);
void fill_uniform(const RandomStream& stream, double* out, std::int64_t n, std::int64_t first = 0);

/// True when uniform numbers can be drawn from [low, high): low < high, and both and their
/// difference are finite.
bool is_interval(double low, double high);

/// Fills `out` with numbers uniform in [low, high). None rounds to `high` in `dtype`, if `dtype`
/// has a number in the interval.
void fill_between(const RandomStream& stream, float* out, std::int64_t n, double low, double high,
                  DType dtype);
void fill_between(const RandomStream& stream, double* out, std::int64_t n, double low, double high,
                  DType dtype);

/// Fills `out` with normally distributed numbers (Box and Muller, 1958).
void fill_normal(const RandomStream& stream, float* out, std::int64_t n, double mean = 0,
                 double deviation = 1);
void fill_normal(const RandomStream& stream, double* out, std::int64_t n, double mean = 0,
                 double deviation = 1);

}  // namespace palimpsest
