#pragma once

#include "benchmarks/claims.h"

/// Each part of the suite registers its benchmarks, and claims what must be true of what they
/// measured.
namespace palimpsest::benchmarks {

/// A training step of every model.
void register_steps();
void claim_steps(const Results& results, Claims& claims);

/// Within a budget against keep-all.
void register_checkpointed();
void claim_checkpointed(const Results& results, Claims& claims);

/// The extremes: a few operations on many elements, many operations on a few.
void register_extremes();
void claim_extremes(const Results& results, Claims& claims);

}  // namespace palimpsest::benchmarks
