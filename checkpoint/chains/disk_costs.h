#pragma once

namespace palimpsest {

/// What one access to the disk takes, in forward steps.
struct DiskCosts {
  double write = 0;
  double read = 0;
};

/// Throws `ArgumentError` for costs that are negative or not finite.
void require_valid(DiskCosts costs);

}  // namespace palimpsest
