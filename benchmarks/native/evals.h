#pragma once

#include <span>

#include "palimpsest.h"

namespace palimpsest::benchmarks {

/// A problem of GradBench, recorded as a reader of its formula would write it, and in the fastest
/// form that is known. Both do the same arithmetic.
struct Eval {
  const char* name;
  const char* subject;
  Var (*natural)(Tape& tape);  ///< records the parameters and returns the loss
  Var (*best)(Tape& tape);
};

std::span<const Eval> evals();

}  // namespace palimpsest::benchmarks
