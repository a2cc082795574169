#pragma once

#include "benchmarks/models.h"

namespace palimpsest::benchmarks {

/// Seconds that a training step of `model` takes one thread of a machine at best, each operation on
/// its own: the longer of its arithmetic and of moving its operands once, from the smallest cache
/// that holds them. What operations that run together do not move counts too, so a step can take
/// less.
double least_seconds(const Model& model, const Machine& machine);

}  // namespace palimpsest::benchmarks
