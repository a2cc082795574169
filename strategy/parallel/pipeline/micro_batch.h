#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "autodiff/tape.h"

namespace palimpsest {

/// A micro-batch that passes through a pipeline.
struct MicroBatch {
  std::size_t program;  ///< index in the plan
  const Tape* tape;     ///< the tape it was recorded on, with its leaves
  std::uint32_t round;  ///< how many times more than the program's tape this one was cleared
  std::byte* outcome;   ///< where the loss or the value is written
  std::vector<std::byte*>
      gradients;  ///< where gradients are written, by parameter; none where they are summed
  std::vector<std::byte*> outputs;  ///< where auxiliary outputs and values of updates are written
};

}  // namespace palimpsest
