#pragma once

#include "autodiff/var.h"

namespace palimpsest {

/// The product a·b where both are the same root of the same values: the norm with p = 2, `hypot`,
/// `abs` or `standard_deviation`. It is recorded from these values, since the square has a second
/// derivative at 0, where the root has none. Where the root `hypot` of ∞ and NaN is ∞, the square
/// is NaN. Undefined for other a and b.
Var product_of_roots(const Var& a, const Var& b, const Where& where);

}  // namespace palimpsest
