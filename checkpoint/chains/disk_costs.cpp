#include "checkpoint/chains/disk_costs.h"

#include <cmath>
#include <string>

#include "autodiff/error.h"

namespace palimpsest {

void require_valid(DiskCosts costs) {
  if (costs.write >= 0 && costs.read >= 0 && std::isfinite(costs.write + costs.read)) return;
  throw ArgumentError("[disk] writing takes " + std::to_string(costs.write) +
                      " steps and reading takes " + std::to_string(costs.read) +
                      "; give finite, non-negative numbers");
}

}  // namespace palimpsest
