#pragma once

#include "benchmarks/claims.h"

/// Each part of the suite registers its benchmarks and claims what must hold for their
/// measurements.
namespace palimpsest::benchmarks {

/// A model run layer by layer with some activations kept, against keeping all of them.
void register_layers();
void claim_layers(const Results& results, Claims& claims);

/// A batch in micro-batches, against the whole batch.
void register_accumulation();
void claim_accumulation(const Results& results, Claims& claims);

/// Results cached from step to step, against recomputing them.
void register_cached();
void claim_cached(const Results& results, Claims& claims);

/// Ways of running a batch in parts against their estimates, and the recommended strategy against
/// all candidates.
void register_choice();
void claim_choice(const Results& results, Claims& claims);

/// Independent branches on two threads, against one thread.
void register_branches();
void claim_branches(const Results& results, Claims& claims);

/// Branches of a model on their own devices, against threads inside operations.
void register_devices();
void claim_devices(const Results& results, Claims& claims);

/// Shards and stages in separate processes, if MPI is available, against one process.
void register_ranks();
void claim_ranks(const Results& results, Claims& claims);

/// Measured steps against estimates from machine rates, without a profile.
void register_rates();
void claim_rates(const Results& results, Claims& claims);

}  // namespace palimpsest::benchmarks
