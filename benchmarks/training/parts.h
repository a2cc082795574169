#pragma once

#include "benchmarks/claims.h"

/// Each part of the suite registers its benchmarks and claims what must hold for their
/// measurements.
namespace palimpsest::benchmarks {

/// A training step of every model.
void register_steps();
void claim_steps(const Results& results, Claims& claims);

/// Training steps within a budget, against keep-all.
void register_checkpointed();
void claim_checkpointed(const Results& results, Claims& claims);

/// The extremes: few operations on many elements, and many operations on few elements.
void register_extremes();
void claim_extremes(const Results& results, Claims& claims);

}  // namespace palimpsest::benchmarks
