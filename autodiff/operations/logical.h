#pragma once

#include "autodiff/export.h"
#include "autodiff/var.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// a where `condition` (bool) is true, b elsewhere. All three broadcast; a and b are promoted to a
/// common dtype. The adjoint flows to the elements that were selected. Throws `DTypeError` for a
/// condition that is not bool.
Var where(const Var& condition, const Var& a, const Var& b, Where line = Where::current());
Var where(const Var& condition, const Var& a, double b, Where line = Where::current());
Var where(const Var& condition, double a, const Var& b, Where line = Where::current());

/// Elementwise, on bools; operands broadcast. They throw `DTypeError` for other dtypes.
Var logical_and(const Var& a, const Var& b, Where where = Where::current());
Var logical_or(const Var& a, const Var& b, Where where = Where::current());
Var logical_not(const Var& x, Where where = Where::current());

}  // namespace palimpsest
