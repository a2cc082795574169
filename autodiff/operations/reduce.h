#pragma once

#include <vector>

#include "autodiff/var.h"

namespace palimpsest {

/// Axes to reduce; empty means all of them. Negative ones count from the end.
using Axes = std::vector<int>;

/// Σ x over `axes`; reduced axes are removed, or kept with size 1.
Var sum(const Var& x, const Axes& axes = {}, bool keep_axes = false,
        Where where = Where::current());

}  // namespace palimpsest
