#pragma once

#include <functional>
#include <optional>
#include <random>
#include <vector>

#include "checkpoint/planners/timeline.h"

namespace palimpsest {

/// Improves an order of computing by large neighbourhood search (Shaw, 1998) under simulated
/// annealing. A move removes a random part of the recomputations, which breaks the limit. It
/// repairs the order by giving up idle storages where most bytes are live. It prefers, with noise,
/// storages that free most bytes above the limit per second of recomputation. Then it removes
/// recomputations whose values can be held after all.
class NeighbourhoodSearch {
 public:
  NeighbourhoodSearch(const Graph& graph, Bytes budget, std::uint64_t seed = 1);

  /// Orders of ever lower peaks than that of `order`, as far as a bounded number of evictions
  /// finds them. A larger `effort` allows more. The result does not depend on the budget.
  std::vector<std::vector<NodeId>> lower(std::vector<NodeId> order, std::size_t effort = 1);

  /// The cheapest order found from `start` within the budget, in `moves` moves. `stop` is called
  /// before each move. `size` returns the bytes of an order's layout; an order counts only when
  /// they are within the budget. Returns `start` when none is.
  std::vector<NodeId> improve(std::vector<NodeId> start, std::uint64_t moves,
                              const std::function<bool()>& stop,
                              const std::function<Bytes(std::span<const NodeId>)>& size);

 private:
  /// Gives storages up until the order keeps to the limit. False when more than `most` would be
  /// needed.
  bool repair(std::vector<NodeId>& order, int most);
  /// A storage to give up, and the nodes that make it again.
  struct Eviction {
    Timeline::Position after = 0;
    Timeline::Position before = 0;
    std::vector<NodeId> nodes;
    double score = 0;
  };

  void find_excess();
  double excess_in(const Timeline::Gap& gap) const;
  bool find_missing(const Timeline::Gap& gap, Timeline::Position position, double most_cost);
  bool find_eviction(Timeline::Position position, Eviction& best);
  Timeline::Position highest_outside(std::span<const Eviction> evictions) const;
  static void insert(std::vector<NodeId>& order, std::vector<Eviction>& evictions);
  void take_out(std::vector<NodeId>& order);
  double cost(std::span<const NodeId> order) const;
  double uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

  const Graph& graph_;
  Bytes budget_;
  Bytes limit_;  // of live bytes; below the budget where layouts of a large graph take more
  Timeline timeline_;
  std::optional<Bytes> least_peak_;  // computed on first use
  std::mt19937_64 random_;
  double noise_ = 0;
  std::vector<Timeline::Position> over_;  // positions above the limit
  std::vector<Bytes> excess_;             // bytes above the limit at each of them
  std::vector<std::uint32_t> met_;        // by node, the last search that visited it
  std::uint32_t round_ = 0;
  std::vector<NodeId> missing_, stack_;
  double missing_cost_ = 0;
  std::vector<ValueId> values_;
};

}  // namespace palimpsest
