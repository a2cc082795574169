#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "autodiff/tape.h"

namespace palimpsest {

/// A micro-batch that goes through a pipeline.
struct MicroBatch {
  std::size_t program;  ///< of the plan
  const Tape* tape;     ///< that it was recorded on: its leaves
  std::uint32_t round;  ///< how often more than the program's this tape was cleared
  std::byte* outcome;   ///< where the loss or the value goes
  std::vector<std::byte*>
      gradients;  ///< where gradients go, by parameter; none where they are summed
};

}  // namespace palimpsest
