#pragma once

#include <span>

#include "palimpsest.h"

namespace palimpsest::benchmarks {

/// A problem of GradBench, recorded as a reader of its formula would write it, and in the fastest
/// form that is known. Except for the gradient of log-sum-exp, both do the same arithmetic.
struct Eval {
  const char* name;
  const char* subject;
  Var (*natural)(Tape& tape);  ///< records the parameters and returns the loss
  Var (*best)(Tape& tape);
};

std::span<const Eval> evals();

}  // namespace palimpsest::benchmarks
