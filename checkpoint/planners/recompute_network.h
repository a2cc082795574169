#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "checkpoint/graph.h"

namespace palimpsest {

/// A moment of a schedule: what runs after it in any case, and what running anything else after it
/// adds.
struct Moment {
  std::vector<bool> after;    ///< by node: runs after the moment
  std::vector<double> extra;  ///< by node: seconds that running it after the moment adds
  std::vector<bool> there;    ///< by root value: the storage is there at the moment at no price
};

/// What has to be kept at a moment, or computed again after it.
///
/// A storage is *demanded* when a node that runs after the moment reads a value in it, or when it
/// is a target's. What is demanded is either kept at the moment or its producer runs after it, and
/// then the producer's inputs are demanded in turn. Views cost nothing here: reading one demands
/// its storage. With a price on each byte kept, the cheapest choice is a minimum cut of a network
/// that has a vertex D for each storage demanded and a vertex X for each node that may run again:
///
///     source → D  ∞                        demanded by what runs after the moment
///     D → X       price × bytes of D       demanded and not computed again, so kept
///     X → D       ∞                        computed again, so its inputs are demanded
///     X → sink    extra of X               computed again
///
/// with what is demanded or computed again on the source's side.
class RecomputeNetwork {
 public:
  RecomputeNetwork(const Graph& graph, const Moment& moment);
  ~RecomputeNetwork();

  struct Choice {
    double seconds = 0;         ///< of what is computed again
    Bytes bytes = 0;            ///< of what is kept
    double value = 0;           ///< seconds + price × bytes of no choice are below
    std::vector<ValueId> kept;  ///< storages, by root value
  };
  /// The cheapest choice at a price in seconds a byte. When several are, `share` asks for one that
  /// keeps about that part of what they differ by, evenly spread over the graph.
  Choice cheapest(double price, std::optional<double> share = {}) const;
  /// Everything demanded, kept.
  const Choice& keep_all() const { return keep_all_; }
  /// Everything computed again that is needed when nothing is kept.
  const Choice& keep_none() const { return keep_none_; }
  /// Vertices and edges.
  std::size_t size() const;

 private:
  struct Flow;
  std::unique_ptr<Flow> flow_;
  Choice keep_all_;
  Choice keep_none_;
};

}  // namespace palimpsest
