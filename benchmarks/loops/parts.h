#pragma once

#include "benchmarks/claims.h"

/// Each part of the suite registers its benchmarks and claims what must hold for their
/// measurements.
namespace palimpsest::benchmarks {

/// A forward step and a gradient, against code written by hand.
void register_by_hand();
void claim_by_hand(const Results& results, Claims& claims);

/// A million steps within 16 MiB.
void register_million();
void claim_million(const Results& results, Claims& claims);

/// A spill file and one hundredth of the memory, against unlimited memory.
void register_disk();
void claim_disk(const Results& results, Claims& claims);

}  // namespace palimpsest::benchmarks
