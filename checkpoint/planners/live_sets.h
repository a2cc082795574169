#pragma once

#include <array>
#include <bit>
#include <vector>

#include "checkpoint/graph.h"

namespace palimpsest {

/// Calls `f` for every bit that is set, the lowest first.
template <class F>
void for_each_bit(std::uint64_t set, F f) {
  for (; set != 0; set &= set - 1) f(static_cast<std::uint32_t>(std::countr_zero(set)));
}

/// A small graph as bit sets, for planners that search over sets of live values. Sources and nodes
/// that no target depends on are left out.
class LiveSets {
 public:
  /// A set of values, by bit.
  using Set = std::uint64_t;
  static constexpr std::size_t most_values = 64;

  struct Storage {
    Set values = 0;
    Bytes bytes = 0;
    double seconds = 0;  ///< to make it; a share of them where its node makes several
  };
  struct Node {
    NodeId id;
    Set reads = 0;
    Set makes = 0;
    Set may_need = 0;  ///< everything that it or a node before it reads
    double cost = 0;
    Bytes workspace = 0;
    /// Storages that outputs may take over, each with the views of that output. They take no bytes
    /// in addition to the output when none of their values is used after the node.
    std::vector<Storage> takings = {};

    /// Bytes of everything that it may take over.
    Bytes taken() const;
  };

  /// True for a graph of at most `most_values` values, not counting those left out.
  static bool holds(const Graph& graph);
  /// Throws `ArgumentError` for more than `most_values` values, not counting those left out.
  explicit LiveSets(const Graph& graph);

  const std::vector<Node>& nodes() const { return nodes_; }
  /// Storages that take bytes, the cheapest for their bytes first.
  const std::vector<Storage>& storages() const { return storages_; }
  Set targets() const { return targets_; }
  /// Targets that it is useless to drop: no node reads the outputs of their nodes, so every run but
  /// the last would be redundant.
  Set held() const { return held_; }
  /// The node that makes a value, as an index into `nodes()`.
  std::uint32_t producer(std::uint32_t value) const { return producers_[value]; }
  /// Nodes that cost nothing, need no workspace, and make no `held` targets. Indices into
  /// `nodes()`, in order.
  const std::vector<std::uint32_t>& free_nodes() const { return free_nodes_; }
  /// Values present at the start.
  Set start() const { return start_; }
  Bytes bytes(Set live) const;
  /// The bytes of the targets, or of a node that has to run, whichever are most.
  Bytes least_peak() const;

  /// Summary of what has to run when a set is live.
  struct Need {
    Set makes = 0;   ///< values that are made
    Set reads = 0;   ///< values that are read, and the targets
    Set useful = 0;  ///< values that some schedule from here could use
    double cost = 0;
  };
  struct Rest : Need {
    std::array<std::uint32_t, most_values> nodes;  ///< indices into `nodes()`, the last one first
    std::uint32_t count = 0;                       ///< of `nodes`
  };
  /// Sets `rest` to what has to run when `live` is live.
  void find_rest(Set live, Rest& rest) const;
  /// The `Need` of `live` without `dropped`, which is part of it.
  Need without(Set dropped, Set live, Need need) const;

 private:
  static void add(const Node& node, Need& need);

  std::vector<Node> nodes_;
  std::vector<Storage> storages_;
  std::vector<std::uint32_t> free_nodes_;
  std::vector<std::uint32_t> producers_;  // by value, into nodes_
  Set targets_ = 0;
  Set start_ = 0;
  Set held_ = 0;
  std::array<std::array<Bytes, 256>, 8> bytes_of_byte_{};  // of storages of one value
  std::vector<Storage> shared_;                            // of several values
};

}  // namespace palimpsest
