#pragma once

#include "autodiff/var.h"

namespace palimpsest {

/// a where `condition` (bool) holds, b elsewhere; all three broadcast, a and b meet in the promoted
/// dtype, and each gets the adjoint of the elements it gave. Throws `DTypeError` for a condition
/// that is not bool.
Var where(const Var& condition, const Var& a, const Var& b, Where line = Where::current());
Var where(const Var& condition, const Var& a, double b, Where line = Where::current());
Var where(const Var& condition, double a, const Var& b, Where line = Where::current());

/// Of bools, element by element; operands broadcast. Throw `DTypeError` for other dtypes.
Var logical_and(const Var& a, const Var& b, Where where = Where::current());
Var logical_or(const Var& a, const Var& b, Where where = Where::current());
Var logical_not(const Var& x, Where where = Where::current());

}  // namespace palimpsest
