#pragma once

#include "autodiff/export.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Cost of one disk access, in forward steps.
struct DiskCosts {
  double write = 0;
  double read = 0;
};

/// Throws `ArgumentError` for costs that are negative or not finite.
void require_valid(DiskCosts costs);

}  // namespace palimpsest
