#pragma once

#include <span>
#include <vector>

#include "checkpoint/graph.h"

namespace palimpsest {

/// Where to cut a forward part into stages, and which storages not to cut.
struct Cuts {
  std::vector<std::size_t> places;  ///< index of the first node after each cut, ascending
  std::vector<bool> held;           ///< by root value: held across cuts, which do not count it
};

struct CutSettings {
  std::uint32_t most_stages = none;
  /// Storages that are read again further away than this part of the forward part (4 means a
  /// fourth) are held. 0 means that none are.
  std::uint32_t far_part = 0;
};

/// Cuts `nodes[0, forward)`; the other nodes are the backward part.
///
/// Few storages cross a good cut, counting forward reads: only one does at an articulation point.
/// And the backward part reads all of them, because what crosses is held anyway. Cuts crossed by
/// one storage are taken if no stage is then longer than an eighth of the nodes. Otherwise cuts
/// crossed by two are allowed, and so on up to eight, and then also cuts whose storages the
/// backward part does not read. When there are more cuts than `most_stages` allows, one cut remains
/// in each part of equal weight, the one that fewest bytes cross. Linear in the graph.
Cuts find_cuts(const Graph& graph, std::span<const NodeId> nodes, std::size_t forward,
               CutSettings settings);

}  // namespace palimpsest
