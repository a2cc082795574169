#pragma once

#include <span>
#include <vector>

#include "autodiff/tape.h"

namespace palimpsest {

/// The requested values of a tape, and the nodes that have to run for them.
struct Needs {
  /// Throws `ArgumentError` for a target that is not a value of the tape. With `afresh`, present
  /// values are treated as absent.
  Needs(const Tape& tape, std::span<const ValueId> targets, std::span<const NodeId> supplied,
        bool afresh = false);

  std::vector<bool> wanted;   ///< by value: a target
  std::vector<bool> present;  ///< by value
  std::vector<bool> sources;  ///< by node: supplied by the user
  /// By node: it has to run, or its values are present and may be dropped and recomputed.
  std::vector<bool> needed;
  std::vector<bool> read;  ///< by value: a target, or read by a needed node
};

}  // namespace palimpsest
