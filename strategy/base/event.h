#pragma once

#include <cstdint>

#include "autodiff/bytes.h"
#include "autodiff/export.h"
#include "autodiff/tape.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// A compute step as it was executed.
struct Event {
  NodeId node = none;      ///< in the planned graph
  std::int64_t start = 0;  ///< of the kernel, in nanoseconds since the run began
  std::int64_t end = 0;
  Bytes live = 0;  ///< bytes of the run that were live meanwhile
  int thread = 0;  ///< index in the arena of threads
};

}  // namespace palimpsest
