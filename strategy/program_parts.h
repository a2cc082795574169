#pragma once

#include <cstddef>
#include <span>

#include "strategy/program.h"

namespace palimpsest {

/// The parts of a program in addition to its tape. For code that runs it by other means.
struct ProgramParts {
  std::span<const Var> outputs;
  /// The first outputs as they were recorded, if the program computes in another precision.
  std::span<const Var> names;
  NodeId backward_begins;
  /// The number of outputs before the gradients of `parameters`; 0 for a program of values.
  std::size_t differentiated;
  std::span<const Var> parameters;
  std::span<const Tape::Update> updates;  ///< of tensors outside of the tape, after each run
};

/// Valid while a copy of the program exists.
ProgramParts parts_of(const Program& program);

}  // namespace palimpsest
