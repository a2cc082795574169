#pragma once

#include <cstdint>

#include "autodiff/bytes.h"
#include "autodiff/tape.h"

namespace palimpsest {

/// One compute step as it happened.
struct Event {
  NodeId node = none;      ///< of the planned graph
  std::int64_t start = 0;  ///< of the kernel, in nanoseconds since the run began
  std::int64_t end = 0;
  Bytes live = 0;  ///< of the run while it ran
  int thread = 0;  ///< index in the arena of threads
};

}  // namespace palimpsest
