#pragma once

#include <cstdint>

#include "autodiff/bytes.h"

namespace palimpsest {

/// When a hybrid tape ends a stage without being told to.
struct StageLimits {
  std::uint32_t nodes = 4096;
  Bytes bytes = 256_MiB;  ///< of what the stage's nodes make, views not counted

  bool operator==(const StageLimits&) const = default;
};

}  // namespace palimpsest
