#pragma once

#include "benchmarks/claims.h"

namespace palimpsest::benchmarks {

/// Registers comparisons of single operations with PyTorch's on one thread, in turns, if there is a
/// PyTorch (see `python_peer.h`). Returns whether there is.
bool register_compared();

/// Claims the ratios of the times.
void claim_compared(const Results& results, Claims& claims);

}  // namespace palimpsest::benchmarks
