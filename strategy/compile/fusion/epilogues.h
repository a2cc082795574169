#pragma once

#include <vector>

#include "strategy/compile/fusion/known_of_tape.h"

namespace palimpsest {

/// Epilogue fusion: the operation of `maker` applies an elementwise node to its result, which is
/// never in memory.
struct Epilogue {
  NodeId node;
  NodeId maker;
  std::uint32_t made;  ///< index of the node's input that the maker makes
};

/// The nodes to fuse as epilogues, in order. The operation of `maker` supports epilogues, and only
/// the node reads its result. The node's other inputs must be in memory anyway and are read element
/// by element. The node's own result must be in memory anyway, or no group reads it.
std::vector<Epilogue> find_epilogues(const Tape& tape, const KnownOfTape& known);

}  // namespace palimpsest
