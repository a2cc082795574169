#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "checkpoint/graph.h"

namespace palimpsest {

/// A moment of a schedule: the nodes that run after it in any case, and the cost of running others
/// after it.
struct Moment {
  std::vector<bool> after;    ///< by node: runs after the moment
  std::vector<double> extra;  ///< by node: seconds that running it after the moment adds
  std::vector<bool> there;    ///< by root value: the storage is live at the moment at no price
};

/// Chooses what to keep at a moment and what to recompute after it.
///
/// A storage is *demanded* when a node that runs after the moment reads a value in it, or when it
/// is a target's. A demanded storage is either kept at the moment, or its producer runs after it.
/// In that case the producer's inputs are demanded in turn. Views cost nothing here: reading one
/// demands its storage. With a price on each byte kept, the cheapest choice is a minimum cut of a
/// network. It has a vertex D for each storage demanded and a vertex X for each node that may run
/// again:
///
///     source → D  ∞                        demanded by what runs after the moment
///     D → X       price × bytes of D       demanded and not recomputed, so kept
///     X → D       ∞                        recomputed, so its inputs are demanded
///     X → sink    extra of X               recomputed
///
/// Demanded storages and recomputed nodes lie on the source's side.
class RecomputeNetwork {
 public:
  RecomputeNetwork(const Graph& graph, const Moment& moment);
  ~RecomputeNetwork();

  struct Choice {
    double seconds = 0;         ///< of recomputation
    Bytes bytes = 0;            ///< of kept storages
    double value = 0;           ///< lower bound on seconds + price × bytes of any choice
    std::vector<ValueId> kept;  ///< storages, by root value
  };
  /// The cheapest choice at a price in seconds per byte. When several are equally cheap, `share`
  /// requests one that keeps about that part of their difference, evenly spread over the graph.
  Choice cheapest(double price, std::optional<double> share = {}) const;
  /// Keeps everything demanded.
  const Choice& keep_all() const { return keep_all_; }
  /// Keeps nothing and recomputes everything that is then needed.
  const Choice& keep_none() const { return keep_none_; }
  /// Number of vertices and edges.
  std::size_t size() const;

 private:
  struct Flow;
  std::unique_ptr<Flow> flow_;
  Choice keep_all_;
  Choice keep_none_;
};

}  // namespace palimpsest
