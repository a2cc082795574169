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

/// A tensor as an operand, together with its source line.
struct LocatedTensor {
  // NOLINTNEXTLINE(google-explicit-constructor): the conversion captures the caller's line
  LocatedTensor(const Tensor& operand, Where line = Where::current())
      : tensor(operand), where(line) {}
  const Tensor& tensor;
  Where where;
};

/// A number as an operand, together with its source line.
struct LocatedNumber {
  // NOLINTNEXTLINE(google-explicit-constructor): the conversion captures the caller's line
  LocatedNumber(double operand, Where line = Where::current()) : number(operand), where(line) {}
  double number;
  Where where;
};

}  // namespace palimpsest
