#pragma once

#include "autodiff/tape.h"

namespace palimpsest {

/// An argument over which the caller of a run would like a result to be written.
struct Donation {
  ValueId argument;  ///< a leaf
  ValueId result;

  bool operator==(const Donation&) const = default;
};

}  // namespace palimpsest
