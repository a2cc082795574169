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

/// Results kept from step to step, against computing them again.
void register_cached();
void claim_cached(const Results& results, Claims& claims);

/// Ways of running a batch in parts against what is estimated of them, and what is recommended
/// against all that is considered.
void register_choice();
void claim_choice(const Results& results, Claims& claims);

/// Branches that do not depend on each other, on two threads against one.
void register_branches();
void claim_branches(const Results& results, Claims& claims);

/// Branches of a model on devices of their own, against threads within operations.
void register_devices();
void claim_devices(const Results& results, Claims& claims);

/// Shards and stages in processes of their own, where there is MPI, against those in one process.
void register_ranks();
void claim_ranks(const Results& results, Claims& claims);

/// Steps against what the rates of the machine say of them, without a profile.
void register_rates();
void claim_rates(const Results& results, Claims& claims);

}  // namespace palimpsest::benchmarks
