#pragma once

#include "autodiff/export.h"
#include "autodiff/var.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// An operand together with its source line. This is how operators such as `+` learn where they are
/// used.
struct Located {
  // NOLINTNEXTLINE(google-explicit-constructor): the conversion captures the caller's line
  Located(const Var& operand, Where line = Where::current()) : var(operand), where(line) {}
  const Var& var;
  Where where;
};

}  // namespace palimpsest
