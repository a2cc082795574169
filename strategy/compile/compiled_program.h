#pragma once

#include <memory>

#include "strategy/compile/instructions.h"

namespace palimpsest {

/// A tape compiled for targets, a budget and a machine: the lowered graph, its plan, and the
/// instructions that carry the plan out. Immutable; any number of runners may share it.
struct CompiledProgram {
  std::shared_ptr<const Lowered> lowered;
  GraphForm form;
  std::shared_ptr<const Plan> plan;
  std::shared_ptr<const Instructions> instructions;

  /// Approximate bytes of the instructions.
  Bytes bytes() const { return instructions->metadata_bytes(); }
};

}  // namespace palimpsest
