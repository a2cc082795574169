#pragma once

#include <span>
#include <vector>

#include "checkpoint/graph.h"

namespace palimpsest {

/// Where to cut a forward part into stages, and which storages not to cut.
struct Cuts {
  std::vector<std::size_t> places;  ///< the first nodes behind the cuts, ascending
  std::vector<bool> held;           ///< by root value: held over cuts, which do not count it
};

struct CutSettings {
  std::uint32_t most_stages = none;
  /// Storages that are read again further on than this part (a fourth, for 4) of the forward part
  /// are held; 0 for no such storages.
  std::uint32_t far_part = 0;
};

/// Cuts `nodes[0, forward)`, where a graph's backward part has the other nodes.
///
/// Few storages cross a good cut, counting forward reads: one does at an articulation point. And
/// the backward part reads them all, since what crosses is held anyway. Cuts that one storage
/// crosses are taken when no stage is then longer than an eighth of the nodes, else those that two
/// do, and so on up to eight; then those too whose storages the backward part does not read. Of
/// more cuts than make `most_stages`, those remain, apart in cost, that fewest bytes cross. Linear
/// in the graph.
Cuts find_cuts(const Graph& graph, std::span<const NodeId> nodes, std::size_t forward,
               CutSettings settings);

}  // namespace palimpsest
