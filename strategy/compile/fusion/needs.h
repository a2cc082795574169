#pragma once

#include <span>
#include <vector>

#include "autodiff/tape.h"

namespace palimpsest {

/// What is asked of a tape, and what has to run for it.
struct Needs {
  /// Throws `ArgumentError` for a target that is no value. Values that are present are there, or
  /// taken for absent with `afresh`.
  Needs(const Tape& tape, std::span<const ValueId> targets, std::span<const NodeId> supplied,
        bool afresh = false);

  std::vector<bool> wanted;   ///< by value: a target
  std::vector<bool> present;  ///< by value
  std::vector<bool> sources;  ///< by node: supplied by the user
  /// By node: has to run, or its values are there and may be dropped and computed again.
  std::vector<bool> needed;
  std::vector<bool> read;  ///< by value: a target, or read by a node that is needed
};

}  // namespace palimpsest
