#pragma once

#include "benchmarks/claims.h"
#include "palimpsest.h"

/// Advection and diffusion on a ring of 100 cells, 2,000 steps in f64.
/// benchmarks/native/small_pde.py holds the same steps in JAX.
namespace palimpsest::benchmarks::small_pde {

/// The loss, with the steps recorded one by one.
Var recorded(Tape& tape);
/// Likewise, as a loop.
Var scanned(Tape& tape);

/// Registers comparisons of the gradient with XLA's on one thread, in turns, if there is JAX (see
/// `python_peer.h`). Returns whether there is.
bool register_comparisons();

/// Claims the ratios of the times.
void claim(const Results& results, Claims& claims);

}  // namespace palimpsest::benchmarks::small_pde
