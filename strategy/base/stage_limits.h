#pragma once

#include <cstdint>

#include "autodiff/bytes.h"
#include "autodiff/export.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// When a hybrid tape ends a stage automatically.
struct StageLimits {
  std::uint32_t nodes = 4096;
  Bytes bytes = 256_MiB;  ///< of values that the stage's nodes make, without views

  bool operator==(const StageLimits&) const = default;
};

}  // namespace palimpsest
