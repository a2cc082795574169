#pragma once

#include <array>
#include <utility>
#include <vector>

#include "checkpoint/planners/live_sets.h"

namespace palimpsest {

/// A lower bound on the recomputation that a budget forces.
///
/// At each node that has to run, the values that are read later may exceed the free memory. Dropped
/// values are made again. This is the bound of checkpoint/lower_bound.h, except that only the
/// storages' own seconds count. So the minimum cut becomes a knapsack, whose relaxation is solved.
/// The knapsacks of several nodes are added up. A storage that is read between two of them is made
/// again after each. Where one run may serve both, its seconds are shared between them.
class ExtraCost {
 public:
  ExtraCost(const LiveSets& sets, Bytes budget);

  /// Seconds that any way from `live` to the targets takes beyond the cost of `rest`, the result of
  /// `find_rest` for `live`. Infinity when there is certainly no way.
  double least(LiveSets::Set live, const LiveSets::Rest& rest);

 private:
  using Set = LiveSets::Set;
  /// Bits are indices in `rest.nodes`, or indices of storages.
  using Mask = std::uint64_t;
  /// The nodes and values that certainly come before and after the first run of a node that has to
  /// run.
  struct Around {
    Mask after, before;
    Set read_after, made_after, made_before;
  };
  /// A node at which storages have to be dropped.
  struct Narrow {
    std::uint32_t index;
    Mask storages;  ///< that may be dropped
    Bytes over;     ///< bytes of them that must be dropped
    double seconds;
  };
  /// The part of a storage's seconds that one knapsack may count.
  struct Item {
    std::uint32_t storage;
    double seconds;
    double bytes;
  };
  using Charges = std::array<double, LiveSets::most_values>;

  void find_around(Set live, const LiveSets::Rest& rest);
  /// False when a node does not fit.
  bool find_narrow(const LiveSets::Rest& rest);
  /// Values read between the first runs of two nodes, in either order.
  Set read_between(std::uint32_t a, std::uint32_t b, const LiveSets::Rest& rest) const;
  /// Finds the seconds of each storage at a node that earlier knapsacks do not count.
  void find_items(const Narrow& narrow, const LiveSets::Rest& rest);
  /// The least seconds that free the bytes, and how much of each storage's seconds they use.
  double solve(Bytes over, Charges& charges);

  const LiveSets& sets_;
  Bytes budget_;
  std::array<Around, LiveSets::most_values> around_;        // by index in `rest.nodes`
  std::array<std::uint32_t, LiveSets::most_values> index_;  // in `rest.nodes`, by node
  std::vector<Narrow> narrow_;
  std::vector<std::pair<const Narrow*, Charges>> counted_;
  std::vector<Item> items_;
};

}  // namespace palimpsest
