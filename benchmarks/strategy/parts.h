#pragma once

#include "benchmarks/claims.h"

/// Each part of the suite registers its benchmarks, and claims what must be true of what they
/// measured.
namespace palimpsest::benchmarks {

/// A model run layer by layer, some activations kept, against all of them.
void register_layers();
void claim_layers(const Results& results, Claims& claims);

/// A batch in micro-batches against the whole of it.
void register_accumulation();
void claim_accumulation(const Results& results, Claims& claims);

/// Branches of a model on devices of their own, against threads within operations.
void register_devices();
void claim_devices(const Results& results, Claims& claims);

/// Steps against what the rates of the machine say of them, without a profile.
void register_rates();
void claim_rates(const Results& results, Claims& claims);

}  // namespace palimpsest::benchmarks
