#pragma once

#include "benchmarks/models.h"

namespace palimpsest::benchmarks {

/// Roofline estimate of the seconds of a training step of `model` on one thread. Each operation
/// takes the longer of its arithmetic and of moving its operands once, from the smallest cache that
/// holds them. Counts memory traffic that fused operations avoid, so a real step can be faster.
double least_seconds(const Model& model, const Machine& machine);

}  // namespace palimpsest::benchmarks
