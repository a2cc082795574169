#pragma once

#include "benchmarks/claims.h"

/// Each part of the suite registers its benchmarks, and claims what must be true of what they
/// measured.
namespace palimpsest::benchmarks {

/// A step forward, and a gradient, against code written by hand.
void register_by_hand();
void claim_by_hand(const Results& results, Claims& claims);

/// A million steps in 16 MiB.
void register_million();
void claim_million(const Results& results, Claims& claims);

/// With a disk and one hundredth of the memory.
void register_disk();
void claim_disk(const Results& results, Claims& claims);

}  // namespace palimpsest::benchmarks
