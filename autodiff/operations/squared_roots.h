#pragma once

#include "autodiff/var.h"

namespace palimpsest {

/// The product a·b where both are the same root: the norm with p = 2, `hypot`,
/// `standard_deviation` or `abs` of the same values. It is recorded from these values, not from the
/// root, since the square has a second derivative where the root has none. Undefined for other a
/// and b.
Var product_of_roots(const Var& a, const Var& b, const Where& where);

}  // namespace palimpsest
