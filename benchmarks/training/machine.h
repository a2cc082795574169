#pragma once

#include "benchmarks/models.h"

namespace palimpsest::benchmarks {

/// What one thread of this machine reaches, as short loops measure it in f32.
struct Limits {
  double flops_per_second;
  double cache_bytes_per_second;   ///< of arrays that fit the second-level cache
  double memory_bytes_per_second;  ///< of arrays that fit no cache
};
Limits measure_limits();

/// Seconds that a training step of `model` takes at these limits, each operation on its own: the
/// longer of its arithmetic and of moving its operands once.
double least_seconds(const Model& model, const Limits& limits);

}  // namespace palimpsest::benchmarks
